import json
from pathlib import Path

import pytest

from bench import hub


@pytest.mark.parametrize(
    "arguments", ["--transport rest", "--transport libp2p --preset auto --topics each"]
)
def test_each_channel_sends_its_message(
    arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "RESULTS", tmp_path / "hub.json")
    hub.main(["--channels", "3", "--settle", "0", "--seconds", "0", *arguments.split()])
    figures = json.loads((tmp_path / "hub.json").read_text())
    assert figures["sent"] == 3
    assert {f"{phase}_cpu_s" for phase in ("open", "idle", "burst", "close")} <= figures.keys()
