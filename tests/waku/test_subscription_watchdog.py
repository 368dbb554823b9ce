"""Deafness is told from quiet by what became of our own messages."""

from __future__ import annotations

import pytest

from waku._subscription_watchdog import MAX_PATIENCE_S, PATIENCE_S, WATCHED, SubscriptionWatchdog


def after(watchdog: SubscriptionWatchdog, *published: int, at_s: float = 0) -> SubscriptionWatchdog:
    for number in published:
        watchdog.publishing(b"%d" % number)
        watchdog.published(b"%d" % number, at_s)
    return watchdog


def test_own_messages_that_do_not_come_back_in_time_mean_deaf() -> None:
    watchdog = after(SubscriptionWatchdog(), 1, 2)
    assert watchdog.deaf_for_s(PATIENCE_S - 0.1) is None
    assert watchdog.deaf_for_s(PATIENCE_S) == PATIENCE_S


@pytest.mark.parametrize("published", [(), (1,), (1, 1)])
def test_who_published_hardly_anything_knows_nothing(published: tuple[int, ...]) -> None:
    assert after(SubscriptionWatchdog(), *published).deaf_for_s(1e6) is None


def test_the_second_message_has_its_time_too() -> None:
    watchdog = after(after(SubscriptionWatchdog(), 1), 2, at_s=100)
    assert watchdog.deaf_for_s(101) is None
    assert watchdog.deaf_for_s(100 + PATIENCE_S) == 100 + PATIENCE_S


@pytest.mark.parametrize("came", [(), (b"1",), (b"theirs",)])
def test_anything_that_comes_is_a_sign_of_life(came: tuple[bytes, ...]) -> None:
    watchdog = after(SubscriptionWatchdog(), 1, 2)
    watchdog.heard(came, 5)
    assert watchdog.deaf_for_s(1e6) is None


def test_what_the_node_did_not_take_does_not_come_back() -> None:
    watchdog = after(SubscriptionWatchdog(), 1, 2)
    watchdog.not_published(b"2")
    assert watchdog.deaf_for_s(1e6) is None


def test_a_node_that_gives_nothing_back_is_not_taken_for_deaf_until_it_does() -> None:
    watchdog = after(SubscriptionWatchdog(), 1, 2)
    watchdog.heard([b"theirs"], PATIENCE_S + 1)
    assert after(watchdog, 3, 4, at_s=20).deaf_for_s(1e6) is None
    watchdog.heard([b"3"], 30)
    assert after(watchdog, 5, 6, at_s=40).deaf_for_s(40 + PATIENCE_S) == PATIENCE_S


def test_patience_doubles_while_reviving_does_not_help() -> None:
    watchdog, now_s, waits = SubscriptionWatchdog(), 0.0, []
    for _ in range(9):
        after(watchdog, 1, 2, at_s=now_s)
        began_s = now_s
        while watchdog.deaf_for_s(now_s) is None:
            now_s += 1
        waits.append(now_s - began_s)
        watchdog.restored()
    assert waits[:4] == [15, 30, 60, 120]
    assert waits[-1] == MAX_PATIENCE_S
    assert watchdog.restorations == 9
    watchdog.heard([b"theirs"], now_s)
    assert watchdog.restorations == 0
    assert after(watchdog, 1, 2, at_s=now_s).deaf_for_s(now_s + PATIENCE_S)


def test_what_is_watched_is_bounded() -> None:
    assert len(after(SubscriptionWatchdog(), *range(1_000)).not_echoed) == WATCHED
