"""A participant that starts again without state, under the same sender id."""

from reliable_channel.sds import Outcome

from .world import NOW_MS, delivered, give, participant, send


def test_own_earlier_messages_are_taken_as_anybodys() -> None:
    alice, bob = participant("alice"), participant("bob")
    first = send(alice, b"first")
    give(bob, first)
    reply = send(bob, b"reply")
    again = participant("alice")
    assert again.receive(reply.data, NOW_MS).outcome is Outcome.PARKED
    assert again.receive(first.data, NOW_MS).outcome is Outcome.DELIVERED
    assert delivered(again) == [b"first", b"reply"]
    assert again.log.digest() == bob.log.digest()


def test_an_own_echo_is_still_ignored_and_acknowledges_nothing() -> None:
    alice = participant("alice")
    first, second = send(alice, b"first"), send(alice, b"second")
    assert alice.receive(first.data, NOW_MS).outcome is Outcome.OWN
    assert alice.receive(second.data, NOW_MS).outcome is Outcome.OWN
    assert len(alice.outgoing_buffer) == 2


def test_what_an_earlier_self_said_acknowledges_nothing() -> None:
    alice, again = participant("alice"), participant("alice")
    mine = send(again, b"mine")
    give(alice, mine)
    give(again, send(alice, b"of another device, which refers to mine"))
    assert len(again.outgoing_buffer) == 1
