"""The sentence of an explanation, and its other forms."""

import json
from typing import Any

import pytest

from reliable_channel.explanation import Dispatch, Explanation, RequestSeen, StoreSearch, Way


def explained(**values: Any) -> Explanation:
    named: dict[str, Any] = {"message_id": "m" * 64, "participant_id": "bob", "at_ms": 10_000}
    return Explanation(**named | values)


ARRIVED: dict[str, Any] = {
    **{"sender_id": "alice", "sent_ms": 1_000, "logged_ms": 3_000},
    **{"arrived_ms": 3_000, "in_log": True},
}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (ARRIVED | {"way": Way.FIRST_COPY}, "its first copy arrived after 2.0 s"),
        (ARRIVED | {"way": Way.LIVE}, "it arrived after 2.0 s"),
        (
            ARRIVED | {"way": Way.EXTRA_COPY},
            "its first copy did not arrive; another copy arrived after 2.0 s",
        ),
        (
            ARRIVED
            | {
                "way": Way.REPAIR,
                "noticed_ms": 1_500,
                "noticed_from": "carol",
                "requests": (RequestSeen(2_000, "bob"), RequestSeen(2_500, "dave")),
            },
            (
                "it did not arrive; it was noticed as missing after 0.5 s, through a message of "
                "carol; 2 repair requests by bob, dave, first after 1.0 s; a repeated copy "
                "arrived after 2.0 s"
            ),
        ),
        (
            ARRIVED
            | {
                "way": Way.STORE,
                "searches": (
                    StoreSearch(1_500, "hint", 10, "failed"),
                    StoreSearch(2_000, "hint", 10, "not found"),
                    StoreSearch(2_500, "time", 10, "found"),
                ),
            },
            (
                "it did not arrive; Store failed once; Store was searched 2 times; Store had it "
                "after 2.0 s"
            ),
        ),
        (
            ARRIVED
            | {"way": Way.FIRST_COPY, "logged_ms": 4_000, "waited_for": ("a", "b", "c", "d")},
            "its first copy arrived after 2.0 s; it waited 1.0 s for a, b, c and 1 more",
        ),
        (
            {"noticed_ms": 4_000, "lost_ms": 9_000},
            "it did not arrive; it was noticed as missing; it was declared lost after 5.0 s",
        ),
        ({}, "it did not arrive, and no message that arrived refers to it"),
        (
            {"in_log": True, "sender_id": "alice"},
            "it entered the log before the channel was opened, or too many messages ago",
        ),
        (
            {"in_log": True, "sender_id": "bob"},
            "it was sent before the channel was opened, or too many messages ago",
        ),
        (
            {
                **{"sender_id": "bob", "sent_ms": 1_000, "failure": "refused"},
                "dispatches": (Dispatch(4_000, "content"), Dispatch(4_400, "copy")),
            },
            "it waited 3.0 s for a node; it was published 2 times within 0.4 s; refused",
        ),
    ],
)
def test_a_sentence_for_each_case(values: dict[str, Any], sentence: str) -> None:
    assert explained(**values).sentence == sentence


def test_steps_are_in_order_of_time() -> None:
    steps = explained(
        **ARRIVED | {"logged_ms": 4_000},
        way=Way.STORE,
        noticed_ms=2_000,
        noticed_through="n" * 64,
        noticed_from="carol",
        requests=(RequestSeen(2_100, "bob"),),
        searches=(StoreSearch(2_900, "hint", 100, "found"),),
        lost_ms=2_950,
        acknowledged_ms=None,
    ).steps
    assert steps == (
        (1_000, "sent, by the clock of its sender"),
        (2_000, "noticed as missing, through nnnnnnnn of carol"),
        (2_100, "requested by bob"),
        (2_900, "Store searched by hint for 0.1 s: found"),
        (2_950, "declared lost"),
        (3_000, "arrived (store)"),
        (4_000, "entered the log"),
    )
    own = explained(
        sender_id="bob",
        sent_ms=1,
        dispatches=(Dispatch(2, "content"),),
        acknowledged_ms=3,
        acknowledged_by="carol",
    )
    assert [what for _, what in own.steps][1:] == ["published (content)", "acknowledged by carol"]
    assert own.late_ms is None


def test_it_is_an_object_of_json() -> None:
    values = explained(**ARRIVED, way=Way.STORE, requests=(RequestSeen(1, "bob"),)).to_dict()
    assert json.loads(json.dumps(values))["requests"] == [{"at_ms": 1, "participant_id": "bob"}]
    assert (values["way"], values["sentence"]) == (
        "store",
        "it did not arrive; a repair request, after -1.0 s; Store had it after 2.0 s",
    )
