"""Vectors that do not fit into one packet go out in parts which add up."""

from collections.abc import Iterator

import pytest

from reliable_channel_svs import Name, State, StateVector, SvsOptions, SvsProtocol, VectorSplit
from reliable_channel_svs.splitting import split

OWN = Name.parse("/own")
NOW = 1_736_266_473_000
BOOT = NOW // 1000


def many(count: int) -> StateVector:
    entries = {Name.parse(f"/big/node-{n:04}"): {BOOT: n + 1} for n in range(count)}
    return StateVector({**entries, OWN: {BOOT: 7}})


def joined(parts: list[bytes]) -> StateVector:
    whole = StateVector()
    for part in parts:
        whole.merge(StateVector.decode(part))
    return whole


@pytest.mark.parametrize("count", [0, 1, 231, 232, 233, 1_000])
def test_the_parts_add_up_and_each_fits(count: int) -> None:
    vector = many(count)
    parts = split(vector, OWN, 7_500)
    assert joined(parts) == vector
    assert all(len(part) <= 7_500 for part in parts)
    assert (len(parts) == 1) is (len(vector.encode()) <= 7_500)
    assert OWN in StateVector.decode(parts[0])
    for part in parts:  # canonical order holds within each
        assert StateVector.decode(part).encode() == part


def test_an_entry_longer_than_a_part_is_divided_between_bootstrap_times() -> None:
    vector = StateVector({OWN: {BOOT - n: n + 1 for n in range(100)}})
    parts = split(vector, OWN, 200)
    assert len(parts) > 5 and joined(parts) == vector
    assert all(len(part) <= 200 for part in parts)


def test_who_hears_all_parts_does_not_answer() -> None:
    draws: Iterator[float] = iter([0.5] * 20)
    sender = SvsProtocol(OWN, now_ms=NOW, random=lambda: 0.5, vector=many(600))
    hearer = SvsProtocol(
        Name.parse("/other"), now_ms=NOW, random=lambda: next(draws), vector=many(600)
    )
    sender.publish(NOW)
    parts = list(sender.outgoing())
    assert list(sender.events()) == [VectorSplit(3, sum(map(len, parts)))]
    for part in parts:
        hearer.receive(part, NOW + 5_000)
    assert hearer.state is State.SUPPRESSION
    hearer.on_deadline(hearer.next_deadline_ms())
    assert list(hearer.outgoing()) == []
    assert hearer.vector == sender.vector


def test_a_split_is_told_when_its_number_of_parts_changes() -> None:
    options = SvsOptions(vector_bytes=2_000)
    core = SvsProtocol(OWN, now_ms=NOW, random=lambda: 0.5, vector=many(100), options=options)
    for _ in range(3):
        core.announce(NOW)
        assert len(list(core.outgoing())) == 2
    assert len(list(core.events())) == 1
