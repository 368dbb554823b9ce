"""The rooms of docs/design.md are those of the code, and every arrow points down."""

import re
from pathlib import Path
from typing import Final, NamedTuple

import grimp

ROOT: Final = Path(__file__).parents[2]
PLUGINS: Final = [found.parent.name for found in ROOT.glob("plugins/*/pyproject.toml")]
NO_ROOM: Final = {"reliable_channel._lazy", "reliable_channel._version"}
"""Modules that only load the names of packages, for rooms on all floors."""


class Room(NamedTuple):
    """A row of the page."""

    floor: int
    modules: list[str]
    imports: set[str]


def tree() -> set[Path]:
    """Return the files and folders that the tree of the page names."""
    text = (ROOT / "docs" / "design.md").read_text().split("## The rooms")[0]
    found = set[Path]()
    above, folder = [(0, Path())], Path()
    for indent, line in re.findall(r"(?m)^    ( *)(\S.*)$", text):
        names, _, words = line.partition("  ") if len(indent) < 10 else ("", "", line)
        while names and above[-1][0] > len(indent):
            above.pop()
        paths = [above[-1][1] / name for name in names.split()]
        if names.endswith("/"):
            folder = paths[-1]
            above.append((len(indent) + 2, folder))
        found.update(paths, [folder / name for name in re.findall(r"\b\w+\.py\b", words)])
    return found


def rooms() -> dict[str, Room]:
    page = (ROOT / "docs" / "design.md").read_text()
    rows = re.findall(r"(?m)^\| (\d+) \| ([^|]+) \| ([^|]+) \|([^|]*)\|$", page)
    return {
        name: Room(
            int(floor), re.findall(r"`([\w.]+)`", text), set(re.findall(r"\w+(?: \w+)*", below))
        )
        for floor, name, text, below in rows
    }


def imports(page: dict[str, Room]) -> dict[str, set[str]]:
    """The rooms that each room imports, lazy and type-only imports included."""
    room_of = {}
    for name, room in page.items():
        for module in room.modules:
            is_root_module = module.partition(".")[0] not in ("reliable_channel", "waku", *PLUGINS)
            room_of[f"reliable_channel.{module}" if is_root_module else module] = name
    graph = grimp.build_graph("reliable_channel", "waku", *PLUGINS, cache_dir=None)
    assert room_of.keys() - graph.modules == set()
    for module in sorted(graph.modules - NO_ROOM):  # a package comes before its modules
        package = module.rpartition(".")[0]
        if module not in room_of:
            assert package not in ("reliable_channel", "waku"), f"{module} has no room"
            room_of[module] = room_of[package]
    found: dict[str, set[str]] = {name: set() for name in page}
    for module in graph.modules - NO_ROOM:
        others = graph.find_modules_directly_imported_by(module) - NO_ROOM
        found[room_of[module]].update({room_of[other] for other in others} - {room_of[module]})
    return found


def test_the_page_has_the_rooms_and_their_arrows_and_no_arrow_points_up() -> None:
    page = rooms()
    arrows = imports(page)
    up = [(a, b) for a in arrows for b in arrows[a] if page[b].floor >= page[a].floor]
    assert up == []
    below: dict[str, set[str]] = {}
    for name in sorted(page, key=lambda name: page[name].floor):
        implied = set[str]().union(*(below[other] for other in arrows[name]))
        assert page[name].imports == arrows[name] - implied, name
        below[name] = arrows[name] | implied


def test_the_tree_of_the_page_is_that_of_the_code() -> None:
    named = tree()
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    for folder in ("reliable_channel", "reliable_channel/sds", "waku"):
        packages = {file.parent.relative_to(ROOT) for file in ROOT.glob(f"{folder}/*/__init__.py")}
        assert packages - named == set()
