"""The shape of a causal DAG."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from reliable_channel_audit.dag import DagPosition as At
from reliable_channel_audit.dag import Said, places, said_by, shape, union
from reliable_channel_audit.journals import group_of, journal_files

from .generated import write_group


def said(message_id: str, lamport: int, *references: str, sender_id: str = "alice") -> Said:
    return Said("general", "alice", message_id, sender_id, lamport, lamport, references)


DIAMOND = [
    said("a", 1, "older"),
    said("b", 2, "a"),
    said("c", 2, "a", sender_id="bob"),
    said("d", 3, "a", "b", "c"),
]


def test_a_diamond() -> None:
    assert places(DIAMOND) == [
        At("general", "a", "alice", 1, 1, references=1, orphaned=1, depth=1),
        At("general", "b", "alice", 2, 2, references=1, orphaned=0, depth=2),
        At("general", "c", "bob", 2, 2, references=1, orphaned=0, depth=2),
        At("general", "d", "alice", 3, 3, references=3, orphaned=0, depth=3),
    ]


def test_each_message_once_as_whoever_saw_it_first_has_it() -> None:
    later = said("a", 1)._replace(participant_id="bob", at_ms=0)
    other = later._replace(channel_id="another")
    found = union([*DIAMOND, later, other])
    assert found == {"another": [other], "general": [later, *DIAMOND[1:]]}


def test_a_shape() -> None:
    assert shape(places(DIAMOND)) == ("general", 4, 6, 3, 1)


def test_a_circle_ends_at_the_later_message() -> None:
    found = places([said("a", 1, "b"), said("b", 2, "a"), said("c", 3, "b"), said("d", 4, "d")])
    assert [each.depth for each in found] == [1, 2, 3, 1]


@pytest.mark.parametrize("seed", range(5))
def test_depth_by_definition(seed: int) -> None:
    """Against the definition, taken word for word."""
    random = Random(seed)
    messages: list[Said] = []
    for number in range(40):
        known = [each.message_id for each in messages]
        chosen = random.sample(known, min(len(known), random.randint(0, 4)))
        messages.append(said(f"m{number:02}", number, *chosen))

    def depth(each: Said) -> int:
        return 1 + max((depth(messages[int(other[1:])]) for other in each.references), default=0)

    found = places(random.sample(messages, len(messages)))
    assert [each.depth for each in found] == [depth(each) for each in messages]


def test_a_journal_has_the_dag_of_the_channel(tmp_path: Path) -> None:
    write_group(tmp_path, loss=0.3)
    group = group_of(journal_files([tmp_path])).participants
    one, *others = (places(union(said_by(each))["general"]) for each in group)
    assert len(one) == 120
    assert not any(each.orphaned for each in one)
    for other in others:
        assert [each._replace(at_ms=0) for each in other] == [
            each._replace(at_ms=0) for each in one
        ]


class Id(str):
    """An id that counts how often one is looked up."""

    lookups = 0

    def __hash__(self) -> int:
        Id.lookups += 1
        return super().__hash__()


def test_a_dag_twice_as_large_takes_twice_the_lookups() -> None:
    """A look at all messages for each of them would be four times as many."""
    lookups = []
    for count in (200, 400):
        ids = [Id(f"{number:03}") for number in range(count)]
        chain = [
            Said("general", "alice", each, "alice", place, place, ids[max(0, place - 3) : place])
            for place, each in enumerate(ids)
        ]
        Id.lookups = 0
        assert len(places(chain)) == count
        lookups.append(Id.lookups)
    assert lookups[1] < 2.5 * lookups[0]
