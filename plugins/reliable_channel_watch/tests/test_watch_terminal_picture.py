"""What the characters of the terminal's picture say."""

from reliable_channel_watch.explaining import explain
from reliable_channel_watch.model import View
from reliable_channel_watch.terminal.picture import (
    NAME_WIDTH,
    Window,
    detail,
    draw,
    head,
    lamps,
    missing,
    slider,
)
from reliable_channel_watch.values import Lamp

EVIL = "\x1b[31mmal[bold]lory\n"


def channel() -> View:
    """alice sends at 0 s, bob refers to it at 5 s, and carol lacks it."""
    view = View()
    for name in ("alice", "bob", "carol"):
        view.opened(name, 0, "ops")
    view.entered_log("alice", "first", "alice", 0)
    view.went_out("alice", "first", "content", 100)
    view.passed(
        "second",
        "bob",
        5_000,
        references=["first"],
        has_content=True,
        lamport_timestamp=5,
        size_bytes=100,
        hint=bytes(32),
        sent_ms=5_000,
    )
    view.is_missing("carol", "first", 6_000, sender="alice", hint=None)
    view.traffic(b"1", 1_000, 10, 9_000)
    return view


def rows(view: View, until_ms: int, selected: int | None = None) -> list[str]:
    picture = draw(view, Window(until_ms, 10_000, 10), selected)
    return [
        picture.row(number, lane.name, 10).plain[NAME_WIDTH:]
        for number, lane in enumerate(view.lanes)
    ]


def test_dots_and_gaps_are_where_and_when_they_belong() -> None:
    view = channel()
    assert rows(view, 9_000) == ["◐         ", "     ·    ", "      ░░░░"]
    assert rows(view, 4_500) == ["     ○    ", "          ", "          "]
    view.was_lost("carol", "first", 8_000)
    assert rows(view, 9_000)[2] == "      ▓▓▓ "


def test_arrows_lead_from_a_message_to_what_it_follows() -> None:
    view = channel()
    assert rows(view, 9_000, selected=1)[0] == "◐────╮    "
    assert rows(view, 9_000, selected=0)[0] == "◐────╮    "
    assert rows(view, 4_000, selected=0)[0] == "     ○    ", "what follows was not there yet"


def test_several_messages_in_one_place_are_counted() -> None:
    view = channel()
    for number in range(12):
        view.entered_log("carol", f"{number}", "carol", 9_000)
        if number == 2:
            assert rows(view, 9_000)[2][-1] == "3"
    assert rows(view, 9_000)[2][-1] == "+"


def test_gaps_name_who_is_asked() -> None:
    view = channel()
    view.asked_others("carol", ["first"], 7_000)
    assert missing(view, 6_500).plain.endswith("Store, by time; the others are not asked yet")
    assert "carol misses 1" in missing(view, 6_500).plain
    assert "once; alice answers first" in missing(view, 7_000).plain
    assert missing(view, 5_000).plain == ""


def test_a_lamp_that_is_off_comes_first_with_its_reason() -> None:
    view = channel()
    view.lamp("alice", "", Lamp.SEND, 1, is_on=True)
    view.lamp("bob", "http://n:1", Lamp.STORE, 2, is_on=False, why="refused")
    first, second = lamps(view, 9_000).plain.splitlines()
    assert first.startswith("bob at http://n:1") and first.endswith("refused")
    assert second.startswith("alice") and "● send" in second and "○ store" in second
    for number in range(20):
        view.lamp(f"p{number}", "", Lamp.SEND, 3, is_on=True)
    assert lamps(view, 9_000).plain.splitlines()[-1] == "and 17 more, 17 without a fault"


def test_the_head_and_the_slider_show_traffic() -> None:
    view = channel()
    text = head(view, 9_000, is_live=False).plain
    assert "ops  3 participants  2 messages  100 B/s  99.00% of it overhead" in text
    assert text.endswith("past")
    bar = slider(view, 9_000, 10).plain
    assert bar[-1] == "█" and bar[0] == "·"


def test_names_and_words_of_others_cannot_steer_the_terminal() -> None:
    view = View()
    view.opened(EVIL, 0, EVIL)
    view.entered_log(EVIL, EVIL, EVIL, 0)
    view.is_missing(EVIL, EVIL, 0, sender=EVIL, hint=None)
    view.lamp(EVIL, EVIL, Lamp.SEND, 0, is_on=False, why=EVIL)
    view.has_failed(EVIL, EVIL, 0, EVIL)
    message = view.messages[0]
    shown = [
        head(view, 0, is_live=True, note=EVIL),
        lamps(view, 0),
        missing(view, 0),
        detail(explain(view, message)),
        draw(view, Window(0, 10_000, 10), 0).row(0, EVIL, 10),
    ]
    for text in shown:
        assert "\x1b" not in text.plain and "mal" in text.plain
        assert all(line.isprintable() for line in text.plain.splitlines())
        assert "[bold]" in text.plain or len(text.plain) < 40
