"""The command under test is that of the kit, in the processes that tests start."""

import pytest


@pytest.fixture(autouse=True)
def kit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELIABLE_CHANNEL_PLUGINS", "conformance")
