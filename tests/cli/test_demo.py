"""The demo: that it ends well, and that it names one reason where it does not."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from reliable_channel.cli.demo.processes import ending, started
from reliable_channel.cli.exit_codes import ExitCode

from .processes import PROGRAM

ENVIRONMENT = {**os.environ, "COLUMNS": "140", "NO_COLOR": "1"}
FOR_EVER = "100000"


def _demo(*flags: str) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, "demo", *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)


@pytest.mark.slow
def test_it_ends_with_equal_logs(tmp_path: Path) -> None:
    flags = ["--messages", "6", "--seed", "1", "--journals", str(tmp_path), "--timeout", FOR_EVER]
    result = _demo(*flags)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "All 5 logs are equal" in result.stdout
    assert "What to try next" in result.stdout
    journals = [path.read_text().splitlines() for path in tmp_path.glob("*.jsonl")]
    assert len(journals) == 5
    for lines in journals:  # all were there for as long as `check` waits
        told = [json.loads(line) for line in lines]
        options, ended_ms = told[0]["options"], told[-1]["at_ms"]
        settle_ms = options["retry_interval_ms"] + options["repair_t_max_ms"] + 10_000
        logged = [each["at_ms"] for each in told if each["event"] == "message_logged"]
        assert max(logged) + settle_ms <= ended_ms


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True])
def test_several_nodes_show_their_mesh(as_json: bool) -> None:
    flags = ["--messages", "2", "--seed", "1", "--nodes", "3", "--timeout", FOR_EVER]
    shown = _demo(*flags, *(["--json"] if as_json else []))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    if not as_json:
        assert "3 nodes in a chain over libp2p, with 1, 2 and 1 peers in their mesh" in shown.stdout
        return
    (outcome,) = map(json.loads, shown.stdout.splitlines())
    assert outcome["mesh_peers"] == [1, 2, 1]
    assert outcome["equal"] and outcome["messages"] == 10
    assert [each["sent"] for each in outcome["participants"]] == 5 * [2]
    assert len({each["digest"] for each in outcome["participants"]}) == 1


def test_too_little_time_to_start_is_one_reason() -> None:
    result = _demo("--timeout", "0.05", "--seed", "1")
    assert result.returncode == ExitCode.FAILED
    assert result.stderr == (
        "error: starting a Waku node and five participants: no progress for 0.05 s; more time "
        "may help: --timeout (seed 1)\n"
    )


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
@pytest.mark.anyio
async def test_a_process_is_left_to_the_watcher_of_its_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Another look at the exit status would take it away from the watcher, which logs that.
    looks: list[int] = []

    def poll(popen: subprocess.Popen[bytes]) -> int | None:
        looks.append(popen.pid)
        return popen.returncode

    async with started("peer", "--help-all") as process:
        monkeypatch.setattr(subprocess.Popen, "poll", poll)
    assert process.returncode is not None
    assert process.pid not in looks


@pytest.mark.parametrize(("words", "shown"), [("no key", "no key"), ("", "it printed no reason")])
@pytest.mark.anyio
async def test_a_process_that_ends_is_quoted(words: str, shown: str, anyio_backend: str) -> None:
    code = f"import sys; sys.stderr.write({words!r}); sys.exit(4)"
    async with await anyio.open_process([sys.executable, "-c", code]) as process:
        assert await ending(process) == f"ended with exit status 4: {shown}"


def test_a_participant_that_is_killed_is_named(tmp_path: Path) -> None:
    command = [*PROGRAM, "demo", "--timeout", FOR_EVER, "--seed", "1", "--messages", "500"]
    with subprocess.Popen(
        [*command, "--journals", str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        os.kill(_child(process, "carol"), signal.SIGKILL)
        _, complaint = process.communicate()
    assert process.returncode == ExitCode.FAILED
    assert complaint == "error: carol ended with exit status -9: it printed no reason (seed 1)\n"


def test_sigterm_ends_its_processes_too() -> None:
    command = [*PROGRAM, "demo", "--timeout", FOR_EVER, "--messages", "500"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=ENVIRONMENT) as process:
        participant = _child(process, "erin")
        process.terminate()
        assert process.wait() == ExitCode.TERMINATED
    with pytest.raises(ProcessLookupError):
        os.kill(participant, 0)


def _child(process: subprocess.Popen[Any], name: str) -> int:
    """The process of a participant, once it runs."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while True:
        assert process.poll() is None
        for pid in children.read_text(encoding="utf-8").split():
            with suppress(OSError):  # it has ended
                if name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    return int(pid)
        time.sleep(0.01)  # not busy, so that it has the processor
