"""The commands for people keep state by default; here each test begins without."""

import pytest


@pytest.fixture(autouse=True)
def no_personal_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELIABLE_CHANNEL_STATE", "memory:")
