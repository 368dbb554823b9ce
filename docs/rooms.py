"""Write docs/rooms.svg, the picture of the house, from the imports of its code (`make docs`).

A room stands one row above the highest that it imports, so every arrow points down. Which modules
make up a room is written here; a new module of the root needs a line.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeAlias

import grimp

Arrows: TypeAlias = Mapping[str, frozenset[str]]
"""What each room imports."""
Point: TypeAlias = tuple[float, float]

PICTURE = Path(__file__).with_name("rooms.svg")
_ROOT: Final = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Room:
    """A box of the picture: modules that belong together."""

    name: str
    purpose: tuple[str, ...]
    """At most two lines."""
    modules: tuple[str, ...]
    """Modules, and packages with all in them; of `reliable_channel` and `waku` the roots alone."""


def _room(name: str, purpose: str, package: str, modules: str) -> Room:
    names = (f"{package}.{module}".rstrip(".") for module in modules.split())
    return Room(name, tuple(purpose.split(" / ")), tuple(names))


_SDK: Final = [
    _room("public names", "reliable_channel, spi", "reliable_channel", ". spi"),
    _room("cli", "the command line", "reliable_channel", "cli __main__"),
    _room("testing", "for authors / of transports", "reliable_channel", "testing"),
    _room(
        "channel",
        "the facade: ReliableChannel, / its blocking form, the hub",
        "reliable_channel",
        "channel blocking hub arguments topic_reader health_server",
    ),
    _room("runtime", "AnyIO tasks / around one engine", "reliable_channel", "runtime steady_clock"),
    _room(
        "registry",
        "plugins: found, loaded; / names and URLs to objects",
        "reliable_channel",
        "plugins registry resolve hooks builtin_plugin plugin_transport",
    ),
    _room("engine", "one participant whole, / for any sync protocol", "reliable_channel", "engine"),
    _room(
        "transport",
        "Waku nodes, multicast, / memory; the contract",
        "reliable_channel",
        "transport",
    ),
    _room(
        "vocabulary",
        "options, events, errors, / contracts of plugins",
        "reliable_channel",
        "config encryption errors events explanation finding health notebook notifier "
        "option_values options plugin_code program repair_policies sds_core signing sync_core "
        "terminal_text",
    ),
    _room("segmentation", "long payloads: / segments and back", "reliable_channel", "segmentation"),
    _room("state", "the contract; / SQLite and memory", "reliable_channel", "state"),
    _room("sds", "the protocol: order, repair, / acknowledgements", "reliable_channel", "sds"),
]
_WAKU: Final = [
    _room("waku", "public names", "waku", "."),
    _room("node", "the embedded node, / the same REST API", "waku", "node"),
    _room("p2p, discovery", "light client, relay / without a node", "waku", "p2p discovery"),
    _room(
        "client",
        "typed REST client / of a node",
        "waku",
        "client models hashing topics errors messaging _api _session _failures _gate _hearing "
        "_json _paging _quiet _request _userinfo",
    ),
    _room("libp2p", "connections, noise, / streams", "waku", "libp2p _base58"),
]
_NO_ROOM: Final = {"reliable_channel._lazy", "reliable_channel._version"}
"""They only load the names of packages, for rooms at all heights."""
_ROOMS: Final = {room.name: room for room in [*_SDK, *_WAKU]}

_WIDTH, _ROW, _BOX, _TALL, _TOP = 900, 100, 204, 66, 24
_SDK_WIDTH, _WAKU_BOX = 524, 147
_CHIP, _CHIP_TALL, _CHIP_ROW = 91, 28, 56
_INK, _PALE, _LINE = "#323f4b", "#52606d", "#9aa5b1"
_SANS_IO, _OTHER, _PLUGIN, _INSIDER = "#d9f2e3", "#ffffff", "#fff3cd", "#e4e9f7"


class ArrowUp(ValueError):
    """Rooms import each other in a circle, so one of the arrows would point up."""


class NoRoom(ValueError):
    """A module is in no room of `docs/rooms.py`."""


def plugins() -> list[str]:
    """The names of the packages in `plugins/`."""
    return sorted(found.parent.name for found in (_ROOT / "plugins").glob("*/pyproject.toml"))


def room_of(module: str) -> str | None:
    """The name of a module's room: for a plugin its package; None for what has no room.

    Raises:
        NoRoom: `docs/rooms.py` has no room for it yet.
    """
    package = module.partition(".")[0]
    if package not in ("reliable_channel", "waku"):
        return package
    if module in _NO_ROOM:
        return None
    for room in _ROOMS.values():
        for known in room.modules:
            if module == known or (known != package and module.startswith(f"{known}.")):
                return room.name
    raise NoRoom(f"{module}: add it to a room in docs/rooms.py, then run `make docs`")


def imports() -> Arrows:
    """Which room imports which, lazy and type-only imports included, as the code has it now."""
    graph = grimp.build_graph("reliable_channel", "waku", *plugins(), cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules:
        if (room := room_of(module)) is not None:
            others = map(room_of, graph.find_modules_directly_imported_by(module))
            found.setdefault(room, set()).update(other for other in others if other)
    return {room: frozenset(others - {room}) for room, others in found.items()}


def rows(arrows: Arrows) -> dict[str, int]:
    """The row of each room, from 0 at the bottom: one above the highest that it imports.

    Raises:
        ArrowUp: There is a cycle.
    """
    try:
        order = tuple(TopologicalSorter(arrows).static_order())
    except CycleError as error:
        circle = " → ".join(reversed(error.args[1]))
        raise ArrowUp(f"rooms import each other: {circle}; see `make lint`") from error
    found: dict[str, int] = {}
    for room in order:
        found[room] = 1 + max((found[other] for other in arrows.get(room, ())), default=-1)
    return found


def without_implied(arrows: Arrows) -> Arrows:
    """The arrows that do not also follow from a chain of others; there must be no cycle."""

    @cache
    def reached(room: str) -> frozenset[str]:
        below = arrows.get(room, frozenset())
        return below.union(*map(reached, below))

    return {
        room: others - frozenset().union(*map(reached, others)) for room, others in arrows.items()
    }


def picture(arrows: Arrows | None = None) -> str:
    """The picture as SVG; without `arrows`, that of the code as it is now.

    Raises:
        ArrowUp: There is a cycle.
    """
    arrows = imports() if arrows is None else arrows
    row_of, drawn = rows(arrows), without_implied(arrows)
    sdk_top = max(row_of[room.name] for room in _SDK)
    shelves = _shelves(row_of, drawn)
    above = _TOP + _CHIP_ROW * len(shelves) + 36
    at: dict[str, Point] = {}

    def y_of(row: int) -> float:
        return above + _ROW * (sdk_top - row) + _TALL / 2

    for row in range(sdk_top + 1):
        columns = ((_SDK, 20, 20 + _SDK_WIDTH), (_WAKU, 41 + _SDK_WIDTH, _WIDTH - 21))
        for rooms, left, right in columns:
            at.update(_spread(_row(rooms, row, row_of, drawn), left, right, y_of(row)))
    lines = [
        _arrow(room, other, at, row_of) for room in _ROOMS for other in sorted(drawn.get(room, ()))
    ]
    waku_top = y_of(max(row_of[room.name] for room in _WAKU)) - _TALL / 2 - 14
    bottom = y_of(0) + _TALL / 2 + 34
    sans_io = _sans_io()
    boxes = [_box(room, at[room.name], sans_io) for room in _ROOMS.values()]
    return "\n".join(
        [
            *_head(bottom + 20),
            _frame(35 + _SDK_WIDTH, waku_top, _WIDTH - 15, bottom),
            _text(47 + _SDK_WIDTH, bottom - 12, "package waku: knows nothing of SDS"),
            _text(32, bottom - 12, "package reliable_channel"),
            *_plugins(shelves, drawn, at["public names"], above),
            *lines,
            *boxes,
            *_legend(46 + _SDK_WIDTH, above + 10),
            "</svg>\n",
        ]
    )


def _shelves(row_of: Mapping[str, int], drawn: Arrows) -> list[list[str]]:
    """The plugins in rows, the highest first; what the same plugins import is side by side."""

    def place(plugin: str) -> tuple[int, list[str], str]:
        users = sorted(user for user, others in drawn.items() if plugin in others)
        return (-row_of[plugin], users, plugin)

    by_row = sorted((room for room in row_of if room not in _ROOMS), key=place)
    return [list(same) for _, same in groupby(by_row, key=lambda plugin: row_of[plugin])]


def _row(
    rooms: Iterable[Room], row: int, row_of: Mapping[str, int], drawn: Arrows
) -> Iterator[str]:
    """The rooms of a row, and a free place where a longer arrow passes it: `room → other`."""
    for room in rooms:
        if row_of[room.name] == row:
            yield room.name
        for source, others in drawn.items():
            if source in _ROOMS and room.name in others:
                if row_of[room.name] < row < row_of[source]:
                    yield _passage(source, room.name, row)


def _passage(room: str, other: str, row: int) -> str:
    return f"{room} → {other} in row {row}"


def _spread(names: Iterable[str], left: float, right: float, y: float) -> dict[str, Point]:
    names = list(names)
    step = (right - left) / max(1, len(names))
    return {name: (left + step * (n + 0.5), y) for n, name in enumerate(names)}


def _arrow(room: str, other: str, at: Mapping[str, Point], row_of: Mapping[str, int]) -> str:
    """A line from one box to another, through the free places of the rows between them."""
    start, end = at[room], at[other]
    between = range(row_of[room] - 1, row_of[other], -1)
    passed = [at[_passage(room, other, row)] for row in between]
    ends = [*passed, end]
    points = [(_towards(room, start, ends[0]), start[1] + _TALL / 2)]
    for x, y in passed:
        points += [(x, y - _TALL / 2), (x, y + _TALL / 2)]
    from_there = [start, *passed][-1]
    return _path([*points, (_towards(other, end, from_there), end[1] - _TALL / 2)])


def _towards(name: str, here: Point, there: Point) -> float:
    """Where on the edge of a box a line to another one begins, so that lines fan out."""
    reach = 0.3 * _width(name)
    return here[0] + max(-reach, min(reach, 0.35 * (there[0] - here[0])))


def _width(name: str) -> float:
    return _WAKU_BOX if _ROOMS[name] in _WAKU else _BOX


def _contracts() -> list[dict[str, Any]]:
    """The contracts of import-linter, which `make lint` checks."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    contracts: list[dict[str, Any]] = project["tool"]["importlinter"]["contracts"]
    return contracts


def _sans_io() -> set[str]:
    """The packages whose contract forbids I/O and a clock, without exceptions."""
    return {
        source
        for contract in _contracts()
        if {"time", "socket"} <= set(contract.get("forbidden_modules", ()))
        and "ignore_imports" not in contract
        for source in contract["source_modules"]
    }


def _of_public_names() -> list[str]:
    """The plugins whose contract forbids all but public names."""
    (named,) = (c for c in _contracts() if c["name"] == "plugins use public names only")
    return list(named["source_modules"])


def _head(height: float) -> list[str]:
    return [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" '
            f'width="{_WIDTH}" height="{height:.0f}" font-family="sans-serif" font-size="13">'
        ),
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
            'markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>'
        ),
        f'<rect width="{_WIDTH}" height="{height:.0f}" fill="white"/>',
    ]


def _frame(left: float, top: float, right: float, bottom: float) -> str:
    return (
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{right - left:.0f}" '
        f'height="{bottom - top:.0f}" rx="12" fill="#f4f6f8" stroke="{_LINE}" '
        'stroke-dasharray="5 4"/>'
    )


def _text(left: float, y: float, text: str) -> str:
    return f'<text x="{left:.0f}" y="{y:.0f}" fill="{_PALE}">{escape(text)}</text>'


def _plugins(shelves: list[list[str]], drawn: Arrows, public: Point, above: float) -> Iterator[str]:
    """The row of plugins: arrows between them, and one from all of them to the public names."""
    bottom = _TOP + 2 + _CHIP_ROW * len(shelves)
    yield _frame(15, _TOP - 10, _WIDTH - 15, bottom)
    yield _text(32, _TOP + 8, "plugins: separate packages; the SDK imports none of them")
    base = _spread(shelves[-1], 20, _WIDTH - 20, _TOP + 28 + _CHIP_ROW * (len(shelves) - 1))
    at: dict[str, Point] = dict(base)
    for n, shelf in reversed([*enumerate(shelves)][:-1]):
        free = [x for x, _ in base.values()]
        for name in shelf:
            below = [at[other][0] for other in drawn[name] if other in at]
            wanted = sum(below) / len(below)
            x = min(free, key=lambda x, wanted=wanted: round(abs(x - wanted)))  # type: ignore[misc]
            free.remove(x)
            at[name] = (x, _TOP + 28 + _CHIP_ROW * n)
    for name, (x, y) in at.items():
        for other in sorted(drawn[name] & at.keys()):
            to_x, to_y = at[other]
            yield _path([(x, y + _CHIP_TALL / 2), (to_x, to_y - _CHIP_TALL / 2)])
    of_public_names = _of_public_names()
    for name, (x, y) in at.items():
        fill = _PLUGIN if name in of_public_names else _INSIDER
        yield (
            f'<rect x="{x - _CHIP / 2:.0f}" y="{y - _CHIP_TALL / 2:.0f}" width="{_CHIP}" '
            f'height="{_CHIP_TALL}" rx="6" fill="{fill}" stroke="{_INK}"/>'
            f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle" font-size="12">'
            f"{escape(name.removeprefix('reliable_channel_').replace('_reliable_channel', ''))}"
            "</text>"
        )
    yield _path([(public[0], bottom), (public[0], above)])


def _path(points: Iterable[Point]) -> str:
    path = " L".join(f"{x:.0f},{y:.0f}" for x, y in points)
    return f'<path d="M{path}" fill="none" stroke="#444" marker-end="url(#tip)"/>'


def _box(room: Room, at: Point, sans_io: set[str]) -> str:
    (x, y), width = at, _width(room.name)
    first = y + 14 - 8 * len(room.purpose)
    fill = _SANS_IO if sans_io.issuperset(room.modules) else _OTHER
    texts = "".join(
        f'<text x="{x:.0f}" y="{first + 8 + 16 * n:.0f}" text-anchor="middle" '
        f'fill="{_PALE}">{escape(line)}</text>'
        for n, line in enumerate(room.purpose)
    )
    return (
        f'<rect x="{x - width / 2:.0f}" y="{y - _TALL / 2:.0f}" width="{width}" height="{_TALL}" '
        f'rx="6" fill="{fill}" stroke="{_INK}"/><text x="{x:.0f}" y="{first - 10:.0f}" '
        f'text-anchor="middle" font-weight="bold" font-size="15">{escape(room.name)}</text>{texts}'
    )


def _legend(left: float, top: float) -> Iterator[str]:
    for n, (fill, text) in enumerate(
        [
            (_SANS_IO, "no clock, no I/O, no event loop"),
            (_OTHER, "the other rooms"),
            (_PLUGIN, "plugins that use public names alone"),
            (_INSIDER, "tools that import inner rooms as well"),
            ("", "imports"),
        ]
    ):
        y = top + 24 * n
        if fill:
            yield (
                f'<rect x="{left}" y="{y:.0f}" width="28" height="16" rx="3" fill="{fill}" '
                f'stroke="{_INK}"/>'
            )
        else:
            yield _path([(left, y + 8), (left + 28, y + 8)])
        yield f'<text x="{left + 40}" y="{y + 12:.0f}" fill="{_PALE}">{text}</text>'


if __name__ == "__main__":
    PICTURE.write_text(picture())
