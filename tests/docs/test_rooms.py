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
