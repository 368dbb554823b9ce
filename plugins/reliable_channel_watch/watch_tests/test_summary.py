"""The line that `watch` prints once a minute."""

from reliable_channel_watch.model import View
from reliable_channel_watch.summary import MAX_NAMED, summary


def test_a_line_counts_and_names_the_participants_that_miss_messages() -> None:
    view = View()
    assert summary(view) == "participants: 0; messages: 0; behind: none; lost: 0"
    for name in ("alice", "bob", "carol"):
        view.opened(name, 0)
    for number in range(3):
        view.entered_log("alice", f"{number}", "alice", number)
        view.is_missing("bob", f"{number}", 10, sender="alice", hint=None)
    view.is_missing("carol", "0", 10, sender="alice", hint=None)
    assert summary(view) == (
        "participants: 3; messages: 3; behind: bob (3 missing), carol (1 missing); lost: 0"
    )
    view.entered_log("bob", "0", "alice", 20)
    view.was_lost("bob", "1", 20)
    view.entered_log("carol", "0", "alice", 20)
    assert summary(view) == "participants: 3; messages: 3; behind: bob (1 missing); lost: 1"


def test_a_large_group_is_one_line_and_names_cannot_steer_the_terminal() -> None:
    view = View()
    for number in range(MAX_NAMED + 7):
        view.is_missing(f"\x1b[31m\n{number}", "m", 0, sender=None, hint=None)
    line = summary(view)
    assert line.isprintable() and line.count("missing") == MAX_NAMED and "), 7 more; " in line
