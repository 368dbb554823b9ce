"""The picture of the house: every module has a room, and every arrow points down."""

import re

import pytest

from docs import rooms
from docs.rooms import ArrowUp, NoRoom


def paths(picture: str) -> list[list[tuple[int, int]]]:
    """The points of each line."""
    found = re.findall(r'<path d="M([\d, L]+)" fill', picture)
    return [[(int(x), int(y)) for x, y in re.findall(r"(\d+),(\d+)", path)] for path in found]


def test_every_arrow_points_down() -> None:
    *arrows, legend = paths(rooms.picture())
    for points in arrows:
        heights = [y for _, y in points]
        assert heights == sorted(set(heights)), points
    assert len(legend) == 2


def test_a_room_stands_above_all_that_it_imports() -> None:
    imports = rooms.imports()
    rows = rooms.rows(imports)
    for room, others in imports.items():
        assert all(rows[other] < rows[room] for other in others)
    assert "sds" in imports["engine"]
    assert not imports["sds"]


def test_a_cycle_is_refused() -> None:
    imports = {**rooms.imports(), "sds": frozenset({"engine"})}
    with pytest.raises(ArrowUp, match=r"sds.*engine|engine.*sds"):
        rooms.picture(imports)


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    imports = {"a": frozenset("bcd"), "b": frozenset("cd"), "c": frozenset("d")}
    assert rooms.without_implied(imports) == {
        "a": frozenset("b"),
        "b": frozenset("c"),
        "c": frozenset("d"),
    }


def test_a_long_arrow_passes_between_the_boxes_of_other_rows() -> None:
    (long,) = [points for points in paths(rooms.picture()) if len(points) > 2]
    assert long[1][0] == long[2][0]  # straight down past the boxes of that row


@pytest.mark.parametrize(
    ("module", "room"),
    [
        ("reliable_channel", "public names"),
        ("reliable_channel.sds.wire.nim", "sds"),
        ("reliable_channel.sds_core", "vocabulary"),
        ("reliable_channel._lazy", None),
        ("waku.p2p.codec", "p2p, discovery"),
        ("reliable_channel_audit.check", "reliable_channel_audit"),
    ],
)
def test_the_room_of_a_module(module: str, room: str | None) -> None:
    assert rooms.room_of(module) == room


@pytest.mark.parametrize("module", ["reliable_channel.attic", "waku.attic"])
def test_a_module_without_a_room_is_refused(module: str) -> None:
    with pytest.raises(NoRoom, match=f"{module}: add it"):
        rooms.room_of(module)
