"""Rules: flood, spam, links and raids, with users that try to get around them."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel_moderation import Judge, Policy, Rule, Seen
from reliable_channel_moderation import judge as judge_module
from reliable_channel_moderation.links import MAX_LINKS, why_not_allowed
from tests import inside

NOW_MS = 1_700_000_000_000
ALLOWED = {"status.app", "github.com"}


def seen(user: str = "alice", text: str = "hi", **fields: Any) -> Seen:
    at_ms = fields.pop("at_ms", NOW_MS)
    return Seen(user, text, fields.pop("mentions", 0), at_ms, fields.pop("now_ms", at_ms))


def rules(judge: Judge, messages: Iterable[Seen]) -> list[Rule | None]:
    found = [judge.judge(one) for one in messages]
    return [None if verdict is None else verdict.rule for verdict in found]


def test_many_messages_in_a_short_time_are_a_flood_of_that_user_alone() -> None:
    judge = Judge(Policy(flood_messages=3, flood_s=10))
    assert rules(judge, [seen(at_ms=NOW_MS + n) for n in range(4)]) == [None] * 3 + [Rule.FLOOD]
    assert rules(judge, [seen("bob")]) == [None]
    assert rules(judge, [seen(at_ms=NOW_MS + 10_004)]) == [None]
    assert rules(judge, [seen("eve", mentions=9)]) == [Rule.FLOOD]


def test_clocks_of_the_author_do_not_hide_a_flood() -> None:
    judge = Judge(Policy(flood_messages=3, flood_s=10))
    # Clocks 20 s from each other; all arrive within a second.
    spread = [seen(at_ms=NOW_MS + 20_000 * (n % 5), now_ms=NOW_MS + n * 10) for n in range(20)]
    found = rules(judge, spread)
    assert Rule.FLOOD in found and found.index(Rule.FLOOD) == 9, "three times the limit"


def test_a_flood_into_the_past_is_reported_once() -> None:
    judge = Judge(Policy(late_messages=5))
    late = [seen(at_ms=NOW_MS - 120_000 - 20_000 * n, now_ms=NOW_MS) for n in range(50)]
    assert [rule for rule in rules(judge, late) if rule] == [Rule.LATE]


def test_repeated_and_copied_texts_are_spam_however_they_are_dressed() -> None:
    judge = Judge(Policy(repeats=3, copies=3))
    same = ["Buy cheap tea now", "buy  CHEAP tea now", "buy\u200b cheap te\u00ada now"]
    assert rules(judge, [seen(text=text) for text in same]) == [None, None, Rule.SPAM]
    users = [seen(user, text="Free coins for everybody") for user in "abc"]
    assert rules(judge, users) == [None, None, Rule.SPAM]
    assert rules(judge, [seen("dave", "good morning") for _ in range(5)])[2] is Rule.SPAM
    greetings = [seen("erin", "hello", at_ms=NOW_MS + 60_000 * n) for n in range(5)]
    assert rules(judge, greetings) == [None] * 5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("see https://status.app/c/x and https://docs.github.com", None),
        ("no link: status.app.evil.example", None),
        ("http://evil.example/x", "link to evil.example"),
        ("HTTPS://EVIL.example.", "link to evil.example"),
        ("hxxps://evil.example", "link to evil.example"),
        ("www.evil.example", "link to www.evil.example"),
        ("ht\u200btps://evil.example", "link to evil.example"),
        ("https://status.app@evil.example", "hides its host"),
        ("https://notstatus.app", "link to notstatus.app"),
        ("https://status.app.evil.example", "link to status.app.evil.example"),
        ("https://st\u0430tus.app", "may look like another"),
        ("https://xn--sttus-7ve.app", "may look like another"),
        ("http://evil.example:8080", "link to evil.example"),
        ("https://github.com " * (MAX_LINKS + 1), f"more than {MAX_LINKS} links"),
    ],
)
def test_links_are_to_allowed_hosts(text: str, why: str | None) -> None:
    found = why_not_allowed(text, ALLOWED)
    assert (found is None) is (why is None)
    assert why is None or why in str(found)


def test_without_a_list_only_disguised_links_are_refused() -> None:
    assert why_not_allowed("https://evil.example", None) is None
    assert why_not_allowed("https://a@evil.example", None)


@given(st.text())
def test_any_text_can_be_judged(text: str) -> None:
    why_not_allowed(text, ALLOWED)
    Judge(Policy()).judge(seen(text=text))


def test_many_newcomers_are_a_raid_until_it_is_quiet() -> None:
    judge = Judge(Policy(raid_newcomers=3, raid_s=60, raid_quiet_s=600, learn_s=100))
    old = [seen(f"old {n}", at_ms=NOW_MS + n) for n in range(20)]
    assert rules(judge, old) == [None] * 20, "everybody is new at first"
    at_ms = NOW_MS + 200_000
    raid = [seen(f"new {n}", at_ms=at_ms + n) for n in range(4)]
    assert rules(judge, raid) == [None, None, Rule.RAID, Rule.RAID]
    assert rules(judge, [seen("new 0", at_ms=at_ms + 10), seen("old 1", at_ms=at_ms + 11)]) == [
        Rule.RAID,
        None,
    ]
    at_ms += 700_000
    assert rules(judge, [seen("new 0", at_ms=at_ms), seen("late", at_ms=at_ms)]) == [None, None]
    judge.set_raid(at_ms, is_on=True)
    assert rules(judge, [seen("later", at_ms=at_ms)]) == [Rule.RAID]
    judge.set_raid(at_ms, is_on=False)
    assert rules(judge, [seen("later", at_ms=at_ms)]) == [None]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_module, "MAX_USERS", 50)
    monkeypatch.setattr(judge_module, "MAX_TEXTS", 50)
    judge = Judge(Policy(learn_s=1))
    for n in range(500):
        judge.judge(seen(f"user {n}", f"a text of some length {n}", at_ms=NOW_MS + 2_000 * n))
    windows = [each for each in vars(judge).values() if isinstance(each, judge_module.Windows)]
    sizes = [inside.sizes(each) for each in (judge, *windows)]
    assert max(max(each.values()) for each in sizes) == 50


@pytest.mark.parametrize("wrong", [{"flood_s": 0}, {"mute_at": 5, "kick_at": 4}, {"copies": -1}])
def test_a_policy_that_cannot_hold_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"`\w+` .*must"):
        Policy(**wrong)  # type: ignore[arg-type]
