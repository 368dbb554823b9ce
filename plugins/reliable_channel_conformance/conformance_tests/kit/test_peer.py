"""A program that is not a peer, or a hostile one, ends its row: it cannot stop or crash the kit."""

import shlex
import sys
from pathlib import Path

import anyio
import pytest

from reliable_channel.sds import SPEC
from reliable_channel_conformance.kit import peer
from reliable_channel_conformance.kit.bench import Setting
from reliable_channel_conformance.kit.row import Result
from reliable_channel_conformance.kit.table import ROWS, Outcome, run


def _run(command: str, folder: Path, silence_s: float = 3_600) -> Outcome:
    async def one() -> Outcome:
        setting = Setting(command, SPEC, 1, silence_s)
        async for outcome in run(setting, ROWS[:1], folder):
            return outcome
        raise AssertionError("no outcome")

    return anyio.run(one)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends a peer at once that does not stop by itself."""
    monkeypatch.setattr(peer, "STOPPING_S", 0.01)


def _python(program: str) -> str:
    return shlex.join([sys.executable, "-c", program])


@pytest.mark.usefixtures("impatient")
def test_a_peer_that_is_never_ready_is_not_waited_for_forever(tmp_path: Path) -> None:
    outcome = _run(_python("import sys; sys.stdin.read()"), tmp_path, 0.01)
    assert outcome.result is Result.NOT_RUN
    assert outcome.seen.startswith("peer did not emit 'ready' in 0.01 s")


@pytest.mark.usefixtures("impatient")
def test_a_question_without_an_answer_is_not_waited_for_forever() -> None:
    async def asked() -> None:
        program = 'import sys; print(\'{"event": "ready"}\', flush=True); sys.stdin.read()'
        command = [sys.executable, "-c", program]
        async with peer.running("mute", command, lambda _: None) as mute:
            mute._silence_s = 0.01  # noqa: SLF001
            with pytest.raises(peer.PeerFailed, match=r"^mute did not answer 'log' in 0.01 s"):
                await mute.log()

    anyio.run(asked)


def test_what_a_peer_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    """A child that keeps the pipes had the kit wait for it."""
    child = f"import subprocess, sys; subprocess.Popen([{sys.executable!r}, '-c', 'input()'])"
    outcome = _run(_python(f"{child}; sys.exit(3)"), tmp_path, 0.01)
    assert outcome.result is Result.NOT_RUN


def test_a_program_that_there_is_not_is_named(tmp_path: Path) -> None:
    outcome = _run("/no-such-program", tmp_path)
    assert outcome.result is Result.NOT_RUN
    assert outcome.seen.startswith("peer cannot be started: ")
    assert "/no-such-program" in outcome.seen


def test_the_reason_of_a_peer_is_all_that_is_shown(tmp_path: Path) -> None:
    outcome = _run(_python("import sys; sys.exit('out of coffee')"), tmp_path)
    assert outcome.seen == "peer ended with exit status 1: out of coffee"


@pytest.mark.parametrize(
    "line",
    [
        "hello",
        "[" * 200_000,
        "[]",
        '{"event": ["ready"]}',
        '{"event": "log", "ref": [1]}',
        '{"event": null}',
        "9" * 5_000,
    ],
    ids=lambda line: line[:28],
)
def test_a_line_that_is_no_event_is_passed_over(line: str, tmp_path: Path) -> None:
    (tmp_path / "line").write_text(line)
    program = f"import sys; print(open({str(tmp_path / 'line')!r}).read()); sys.exit('done')"
    outcome = _run(_python(program), tmp_path)
    assert outcome.seen == "peer ended with exit status 1: done"


def test_a_line_without_an_end_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "MAX_LINE", 100_000)
    outcome = _run(_python("while True: print('x' * 1000, end='')"), tmp_path)
    assert outcome.seen.startswith("peer wrote a line of more than 100000 characters")


def test_events_without_end_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "MAX_EVENTS", 1_000)
    outcome = _run(_python('while True: print(\'{"event": "more"}\')'), tmp_path)
    assert outcome.seen.startswith("peer wrote more than 1000 events")
