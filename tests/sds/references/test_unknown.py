"""The budgets for following references."""

from typing import Any

import pytest

from reliable_channel.sds import CoreLimits, HistoryEntry, Message
from reliable_channel.sds.dialects.codec import MAX_ID_BYTES
from reliable_channel.sds.log.log import MessageLog
from reliable_channel.sds.references.unknown import (
    FOLLOWED_BURST,
    ReferenceBudget,
    UnknownReferences,
    excess,
)


def test_all_unknown_references_count() -> None:
    assert len(UnknownReferences((5, 6), (1, 2, 3))) == 5
    assert not UnknownReferences()


def test_what_is_spent_comes_back_with_time() -> None:
    budget = ReferenceBudget(10)
    assert budget.room("alice", 0) == FOLLOWED_BURST
    budget.spend("alice", FOLLOWED_BURST, 0)
    assert budget.room("alice", 0) == 0
    assert budget.room("", 0) == FOLLOWED_BURST
    assert 0 < budget.room("alice", 1_000) <= FOLLOWED_BURST
    assert budget.room("alice", 10_000_000) == FOLLOWED_BURST


def test_the_payer_that_spent_longest_ago_is_forgotten() -> None:
    budget = ReferenceBudget(2)
    for payer in ("alice", "bob", "alice", "carol"):
        budget.spend(payer, 10, 0)
    rooms = {name: budget.room(name, 0) for name in ("alice", "bob", "carol")}
    assert rooms == {
        "alice": FOLLOWED_BURST - 20,
        "bob": FOLLOWED_BURST,
        "carol": FOLLOWED_BURST - 10,
    }


@pytest.mark.parametrize(
    ("length", "reason"),
    [(MAX_ID_BYTES, ""), (MAX_ID_BYTES + 1, "ids or hints of more than")],
)
@pytest.mark.parametrize("part", ["message_id", "sender_id", "retrieval_hint"])
def test_an_id_or_hint_may_have_so_many_bytes(part: str, length: int, reason: str) -> None:
    long: Any = b"x" * length if part == "retrieval_hint" else "x" * length
    values: dict[str, Any] = {"message_id": "m", part: long}
    entry = HistoryEntry(**values)
    message = Message("alice", "id", "c", 1, (entry,), content=b"x")
    found = excess(message, UnknownReferences((0,), ()), MessageLog(1), CoreLimits())
    assert reason in found and bool(found) is bool(reason)
