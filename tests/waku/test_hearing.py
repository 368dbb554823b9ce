"""Deafness is told from quiet by what became of our own messages."""

from __future__ import annotations

import pytest

from waku._hearing import MAX_PATIENCE_S, PATIENCE_S, WATCHED, Hearing


def after(hearing: Hearing, *published: int, at_s: float = 0) -> Hearing:
    for number in published:
        hearing.publishing(b"%d" % number)
        hearing.published(b"%d" % number, at_s)
    return hearing


def test_own_messages_that_do_not_come_back_in_time_mean_deaf() -> None:
    hearing = after(Hearing(), 1, 2)
    assert hearing.deaf_for_s(PATIENCE_S - 0.1) is None
    assert hearing.deaf_for_s(PATIENCE_S) == PATIENCE_S


@pytest.mark.parametrize("published", [(), (1,), (1, 1)])
def test_who_published_hardly_anything_knows_nothing(published: tuple[int, ...]) -> None:
    assert after(Hearing(), *published).deaf_for_s(1e6) is None


def test_the_second_message_has_its_time_too() -> None:
    hearing = after(after(Hearing(), 1), 2, at_s=100)
    assert hearing.deaf_for_s(101) is None
    assert hearing.deaf_for_s(100 + PATIENCE_S) == 100 + PATIENCE_S


@pytest.mark.parametrize("came", [(), (b"1",), (b"theirs",)])
def test_anything_that_comes_is_a_sign_of_life(came: tuple[bytes, ...]) -> None:
    hearing = after(Hearing(), 1, 2)
    hearing.heard(came, 5)
    assert hearing.deaf_for_s(1e6) is None


def test_what_the_node_did_not_take_does_not_come_back() -> None:
    hearing = after(Hearing(), 1, 2)
    hearing.not_published(b"2")
    assert hearing.deaf_for_s(1e6) is None


def test_a_node_that_gives_nothing_back_is_not_taken_for_deaf_until_it_does() -> None:
    hearing = after(Hearing(), 1, 2)
    hearing.heard([b"theirs"], PATIENCE_S + 1)
    assert after(hearing, 3, 4, at_s=20).deaf_for_s(1e6) is None
    hearing.heard([b"3"], 30)
    assert after(hearing, 5, 6, at_s=40).deaf_for_s(40 + PATIENCE_S) == PATIENCE_S


def test_patience_doubles_while_reviving_does_not_help() -> None:
    hearing, now_s, waits = Hearing(), 0.0, []
    for _ in range(9):
        after(hearing, 1, 2, at_s=now_s)
        began_s = now_s
        while hearing.deaf_for_s(now_s) is None:
            now_s += 1
        waits.append(now_s - began_s)
        hearing.revived()
    assert waits[:4] == [15, 30, 60, 120]
    assert waits[-1] == MAX_PATIENCE_S
    assert hearing.revivals == 9
    hearing.heard([b"theirs"], now_s)
    assert hearing.revivals == 0
    assert after(hearing, 1, 2, at_s=now_s).deaf_for_s(now_s + PATIENCE_S)


def test_what_is_watched_is_bounded() -> None:
    assert after(Hearing(), *range(1_000)).unheard == WATCHED
