"""What a page is sent: everything once, and again what changed."""

import json
from typing import Any

from reliable_channel_watch.model import View
from reliable_channel_watch.values import Lamp
from reliable_channel_watch.web.rows import MAX_ROWS, Rows


def taken(rows: Rows) -> dict[str, Any]:
    piece = rows.take()
    assert piece is not None
    values: dict[str, Any] = json.loads(piece)
    return values


def changes(view: View, rows: Rows) -> None:
    rows.changed(view.changed_messages, view.changed_gaps)
    view.changed_messages.clear()
    view.changed_gaps.clear()


def test_nothing_is_sent_before_something_is_known() -> None:
    view = View()
    rows = Rows(view)
    assert rows.take() is None
    view.opened("alice", 5_700, "ops")
    assert taken(rows)["base"] == 5_000
    assert rows.take() is None


def test_a_large_view_comes_in_pieces() -> None:
    view = View()
    for number in range(MAX_ROWS + 10):
        view.entered_log("alice", f"{number}", "alice", number)
    rows = Rows(view)
    first, second = taken(rows), taken(rows)
    assert len(first["messages"]) == MAX_ROWS and first["more"]
    assert len(second["messages"]) == 10 and not second["more"]
    assert rows.take() is None


def test_a_gap_that_closes_and_a_lamp_that_changes_are_sent_again() -> None:
    view = View()
    view.is_missing("bob", "abcdefghijkl", 1_000, sender="alice", hint=None)
    view.lamp("bob", "http://n", Lamp.STORE, 1_000, is_on=True)
    rows = Rows(view)
    first = taken(rows)
    assert first["gaps"] == [[0, 0, 0, None, False, "abcdefgh", "alice", False, []]]
    assert first["lamps"] == [[0, "http://n", [[], [], [[0, True, ""]]]]]
    view.asked_others("bob", ["abcdefghijkl"], 1_500)
    view.was_lost("bob", "abcdefghijkl", 2_000)
    view.lamp("bob", "http://n", Lamp.STORE, 2_000, is_on=False, why="away")
    changes(view, rows)
    second = taken(rows)
    assert second["gaps"] == [[0, 0, 0, 1_000, True, "abcdefgh", "alice", False, [500]]]
    assert second["lamps"][0][2][2][-1] == [1_000, False, "away"]


def test_traffic_is_sent_once_and_the_second_that_still_grows_again() -> None:
    view = View()
    for second in (10, 11, 12):
        view.traffic(b"%d" % second, 100, 10, second * 1_000)
    rows = Rows(view)
    assert sorted(taken(rows)["seconds"]) == [[0, 100, 10], [1, 100, 10], [2, 100, 10]]
    assert rows.take() is None
    view.traffic(b"more", 50, 0, 12_500)
    assert sorted(taken(rows)["seconds"]) == [[1, 100, 10], [2, 150, 10]]


def test_what_was_forgotten_meanwhile_is_left_out() -> None:
    view = View()
    view.entered_log("alice", "m", "alice", 0)
    rows = Rows(view)
    rows.changed({0, 99}, {99})
    assert len(taken(rows)["messages"]) == 1
