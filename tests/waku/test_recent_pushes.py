"""A repeated push is told from one that reaches nobody by what became of the first."""

from __future__ import annotations

import pytest

from waku._recent_pushes import LIMIT, RecentPushes
from waku.errors import BadAnswer, BadRequest, NodeUnreachable, NoPeers, WakuError

NOBODY = NoPeers("lightpush", status=505)


def push(
    pushes: RecentPushes,
    error: BaseException | None,
    message_hash: bytes = b"m",
    peer: bytes = b"",
) -> bool:
    """True if the push counts as taken."""
    try:
        with pushes.pushing(message_hash, peer):
            if error is not None:
                raise error
    except BaseException as raised:
        assert raised is error
        return False
    return True


@pytest.mark.parametrize(
    "first", [None, NodeUnreachable("x"), BadAnswer("x"), KeyboardInterrupt()], ids=repr
)
def test_a_message_that_may_be_out_is_taken_where_the_node_has_it(
    first: BaseException | None,
) -> None:
    pushes = RecentPushes()
    push(pushes, first)
    assert push(pushes, NOBODY)
    assert not push(pushes, NOBODY, b"another")
    assert not push(pushes, NoPeers("lightpush", status=503))


@pytest.mark.parametrize("first", [NOBODY, NodeUnreachable("x", sent=False), BadRequest("x")])
def test_a_message_that_went_nowhere_stays_a_failure(first: WakuError) -> None:
    pushes = RecentPushes()
    assert not push(pushes, first)
    assert not push(pushes, NOBODY)


def test_a_peer_that_reaches_nobody_is_told_from_one_that_had_the_message() -> None:
    pushes = RecentPushes()
    push(pushes, NodeUnreachable("x"), peer=b"slow")
    assert not push(pushes, NOBODY, peer=b"alone")
    assert push(pushes, NOBODY, peer=b"slow")
    push(pushes, None, peer=b"third")
    assert push(pushes, NOBODY, peer=b"alone")  # by relay from the third


def test_what_is_remembered_is_bounded() -> None:
    pushes = RecentPushes()
    for number in range(LIMIT + 1):
        push(pushes, None, b"%d" % number)
    assert not push(pushes, NOBODY, b"0")
    assert push(pushes, NOBODY, b"1")
