"""The commands under test are those of the laboratory, in the processes that tests start."""

import pytest


@pytest.fixture(autouse=True)
def laboratory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELIABLE_CHANNEL_PLUGINS", "lab")
