"""docs/light-client.md finds nodes as it shows, and lists the networks that exist."""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from waku.discovery import find_network
from waku.discovery.networks import _presets

from .test_dns_tree import nodes
from .zone import Zone

PAGE = (Path(__file__).parents[3] / "docs" / "light-client.md").read_text()


def test_the_examples_print_what_they_say(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = Zone()
    monkeypatch.setattr("waku.discovery.SystemResolver", lambda: zone)
    snippets = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    reading, finding = (each for each in snippets if "waku.discovery" in each)
    names: dict[str, Any] = {"TREE": zone.plant("nodes.example", nodes(1))}
    exec(compile(reading, "docs/light-client.md", "exec"), names)
    anyio.run(names["list_nodes"])
    first, problems = capsys.readouterr().out.splitlines()
    assert first.startswith("1 [0] /dns4/n1.example/tcp/1/p2p/16Uiu2")
    assert problems == "[]"
    exec(compile(finding, "docs/light-client.md", "exec"), {})
    assert capsys.readouterr().out == "16 /waku/2/rs/16/32\n"


def test_every_network_is_listed() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| (\d+) \|", PAGE, re.MULTILINE)
    assert {name: int(cluster_id) for name, cluster_id in rows} == {
        name: find_network(name).cluster_id for name in _presets()
    }


def test_the_file_of_the_page_is_a_network(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "mine.toml"
    file.write_text(re.sub(r"entry = .*", "entry = []", text))
    assert find_network(str(file)).cluster_id == 42
