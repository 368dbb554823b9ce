"""What `peer` makes of a line; whole conversations are in test_commands.py. Found by fuzzing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from reliable_channel import DeliveryFailed, MessageReceived
from reliable_channel.cli import peer
from reliable_channel.cli.peer import _command
from reliable_channel.events import AnyEvent


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_a_number_that_json_does_not_have_is_refused(number: str) -> None:
    """An answer repeats `ref`, and `NaN` in it would be no JSON to others."""
    with pytest.raises(ValueError, match=f"{number} is not a JSON number"):
        _command(f'{{"op":"log","ref":{number}}}'.encode())


def test_other_numbers_are_taken() -> None:
    assert _command(b'{"ref":-1.5e3,"op":12}') == {"ref": -1500.0, "op": 12}


@pytest.mark.parametrize(
    "line", [b"[" * 3_000, b"[]", b"null", b"\xff", b"{", b'{"op":' + b"9" * 5_000 + b"}"]
)
def test_what_is_no_command_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        _command(line)


class Channel:
    """Two events, and what was confirmed of them."""

    def __init__(self) -> None:
        self.confirmed: list[AnyEvent] = []

    async def events(self, *, confirm: bool) -> AsyncIterator[AnyEvent]:
        assert not confirm
        yield DeliveryFailed("m1", 3, "nobody")
        yield MessageReceived("m2", "bob", b"", 1, 0)

    async def confirm(self, event: AnyEvent) -> None:
        self.confirmed.append(event)


@pytest.mark.parametrize(("lines", "confirmed"), [(0, 0), (1, 1), (2, 1)])
def test_with_manual_confirm_nothing_counts_before_its_line_is_written(
    monkeypatch: pytest.MonkeyPatch, lines: int, confirmed: int
) -> None:
    """Who reads the lines may be gone, or the disk behind them full."""
    written: list[Any] = []

    def write(values: dict[str, object]) -> None:
        if len(written) == lines:
            raise BrokenPipeError
        written.append(values)

    channel: Any = Channel()
    told: dict[str, MessageReceived] = {}
    monkeypatch.setattr(peer, "write", write)
    if lines < 2:
        with pytest.raises(BrokenPipeError):
            anyio.run(peer.write_events, channel, told)
    else:
        anyio.run(peer.write_events, channel, told)
    assert len(channel.confirmed) == confirmed
    assert list(told) == ["m2"][: lines // 2]
