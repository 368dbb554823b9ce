from __future__ import annotations

import re

from waku import errors
from waku.errors import DETAIL_LIMIT, NodeUnreachable, WakuError, shorten


def subclasses(root: type[WakuError]) -> set[type[WakuError]]:
    return {root}.union(*(subclasses(child) for child in root.__subclasses__()))


def test_the_tree_is_drawn_as_it_is() -> None:
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or ""))
    assert drawn | {"WakuError"} == {error.__name__ for error in subclasses(WakuError)}
    assert set(errors.__all__) == {error.__name__ for error in subclasses(WakuError)}


def test_the_drawing_says_what_is_retryable() -> None:
    lines = re.findall(r"── (\w+) +(.*)", errors.__doc__ or "")
    drawn = {name for name, text in lines if text.startswith("retryable")}
    assert drawn == {error.__name__ for error in subclasses(WakuError) if error.retryable}


def test_every_failure_says_who_is_wrong() -> None:
    sides = (errors.LocalError, errors.RemoteError, errors.EnvironmentFailure)
    for error in subclasses(WakuError) - {WakuError, *sides}:
        assert sum(issubclass(error, side) for side in sides) == 1, error


def test_a_message_says_call_status_words_and_advice() -> None:
    error = errors.NotSubscribed("relay_publish (POST /x)", status=400, detail="Node not  subs\n")
    assert str(error).startswith(
        "relay_publish (POST /x) answered 400: Node not subs; subscribe first"
    )
    assert (error.call, error.status, error.detail) == (
        "relay_publish (POST /x)",
        400,
        "Node not subs",
    )
    assert str(NodeUnreachable("info")) == "info; check the address and that the node runs"


def test_long_words_are_cut() -> None:
    assert shorten("x" * 10_000) == "x" * (DETAIL_LIMIT - 1) + "…"
    assert shorten("x" * DETAIL_LIMIT) == "x" * DETAIL_LIMIT


def test_a_message_can_always_be_written() -> None:
    """A node's JSON may spell half a surrogate pair, which UTF-8 has no bytes for."""
    error = errors.NodeFailure("store (GET /x)", status=500, detail="bad \ud800 cursor")
    assert error.detail == "bad ? cursor"
    assert b"bad ? cursor" in str(error).encode()
