"""The time window of `reliable-channel audit --dag`."""

import pytest
import typer

from reliable_channel_audit.commands.audit import time_window

TEN_MS = 1_795_341_600_000
"""2026-11-22T10:00 UTC."""


def test_windows() -> None:
    assert time_window("..") == (0, 2**63 - 1)
    assert time_window("2026-11-22T10:00..2026-11-22T12:00:01+01:00") == (
        TEN_MS,
        TEN_MS + 3_601_000,
    )
    assert time_window("..2026-11-22T10:00") == (0, TEN_MS)


@pytest.mark.parametrize("text", ["", "yesterday..", "2026-11-22T10:00", "2026-11-23..2026-11-22"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is no time window"):
        time_window(text)
