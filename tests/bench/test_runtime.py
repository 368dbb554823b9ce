from dataclasses import fields
from pathlib import Path

import anyio
import pytest

from bench import runtime
from reliable_channel.sds import states


def test_every_wanted_figure_is_measured() -> None:
    assert set(runtime.WANTED) <= {field.name for field in fields(runtime.Figures)}


def test_the_way_of_one_message_stays_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "check_transitions", False)
    calls, files = anyio.run(runtime.one_message)
    assert 1 < files <= 44
    assert files < calls <= 218


def test_beginning_is_timed_with_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    installed = runtime.as_installed(tmp_path)
    assert list(tmp_path.rglob("reliable_channel/channel.*.pyc"))
    assert runtime.opened_ms(installed) > 0


def test_both_ends_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "WARM_UP", 2)
    monkeypatch.setattr(runtime, "MESSAGES", 4)
    assert anyio.run(runtime.both_ends, 1, None, 2) > 0
    assert runtime.core(1) > 0
