"""Programs that a signal ends."""

import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from reliable_channel import ReliableChannel, run

PROGRAM = """
import sys
import anyio
from reliable_channel import ReliableChannel, run

async def main():
    async with ReliableChannel(
        "memory://p", channel_id="c", sender_id="alice", state=sys.argv[1], journal=sys.argv[2]
    ) as channel:
        await channel.send(b"last words")
        print("open", flush=True)
        try:
            async for event in channel.events():
                pass
        finally:
            print("cancelled", flush=True)
    raise AssertionError("it goes on after the signal")

print(run(main, backend=sys.argv[3]))
"""


@pytest.mark.parametrize(
    ("backend", "number"), [("asyncio", signal.SIGTERM), ("trio", signal.SIGINT)]
)
def test_a_signal_closes_the_channels_of_a_program(
    backend: str, number: signal.Signals, tmp_path: Path
) -> None:
    files = f"sqlite:///{tmp_path}/alice.db", str(tmp_path / "alice.jsonl")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *files, backend],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "open\n"
        process.send_signal(number)
        told, complaint = process.communicate()
    if number is signal.SIGTERM:
        assert (process.returncode, told, complaint) == (0, "cancelled\nNone\n", "")
    else:
        assert (process.returncode, told, complaint) == (130, "cancelled\n", "")
    assert '"message_sent"' in (tmp_path / "alice.jsonl").read_text()


def _heed_interrupts() -> None:
    """Where the tests run in the background, interrupts are ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_program_that_ends_returns_its_result() -> None:
    async def double(number: int) -> int:
        await anyio.lowlevel.checkpoint()
        return 2 * number

    assert run(double, 21) == 42


def test_an_error_is_raised_as_it_is() -> None:
    async def fail() -> None:
        raise LookupError("mine")

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(LookupError, match="mine"):
        run(fail)
    assert signal.getsignal(signal.SIGTERM) == before


def test_ignored_signals_stay_ignored() -> None:
    async def main() -> object:
        return signal.getsignal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert run(main) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_wrong_setting_ends_a_program_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        async with ReliableChannel.from_config(channel_id="c", sender_id="s"):
            raise AssertionError("it opens with a wrong setting")

    monkeypatch.setenv("RELIABLE_CHANNEL_REDUNDANCY", "two")
    with pytest.raises(SystemExit) as ended:
        run(main)
    assert ended.value.code == 2
    told = "error: `RELIABLE_CHANNEL_REDUNDANCY` must be a whole number (got 'two')\n"
    assert capsys.readouterr().err == told
