"""Attack: a kilobyte of compressed messages that unpacks to hundreds of thousands of them."""

import zlib
from collections.abc import Callable
from itertools import count
from unittest.mock import patch

import pytest

from reliable_channel.sds import SdsProtocol
from reliable_channel.sds.adaptive.bundles import (
    EXPANSION,
    MAX_UNPACKED_BYTES,
    MESSAGE_BYTES,
    packed,
)
from reliable_channel.sds.adaptive.inbox import (
    ENTRY_BYTES,
    INBOX_BYTES,
    OPENED_BYTES,
    OPENED_BYTES_PER_S,
    PAUSE_MS,
)
from reliable_channel.sds.adaptive.reconciling import ReconcilingReceiver, ReconcilingState
from reliable_channel.sds.dialects import sds_pb2
from reliable_channel.sds.dialects.codec import MAX_BUNDLED_MESSAGES
from reliable_channel.sds.events import (
    MessageReconciled,
    MessageRejected,
    RejectionReason,
    RepairBudgetReached,
)
from reliable_channel.sds.message import Message, Reconciling
from tests import inside
from tests.sds.world import (
    CHANNEL,
    CODEC,
    NOW_MS,
    SECOND,
    delivered,
    events,
    forge,
    give,
    only,
    participant,
    send,
    taken,
)
from tests.slow import slow

from .cost import calls, peak_bytes
from .test_protobuf import varint

MIB = 1024 * 1024
numbers = count()


def new(references: int = 0) -> bytes:
    number = next(numbers)
    return forge(f"{number:x}", sender="e", after=[f"{number:x}.{i}" for i in range(references)])


BOMBS: dict[str, Callable[[], list[bytes]]] = {
    "empty": lambda: [b""] * 900_000,
    "of one byte": lambda: [b"x"] * 600_000,
    "of ten bytes": lambda: [b"\x0a\x08mallory!"] * 100_000,
    "the same": lambda: [new()] * 40_000,
    "a reference to nothing each": lambda: [new(1) for _ in range(2_000)],
    "100 references to nothing each": lambda: [new(100) for _ in range(600)],
    "a long one that is none": lambda: [bytes(MAX_UNPACKED_BYTES - 10), b"next"],
    "a long content": lambda: [forge("long", content=bytes(MIB - 100)), new()],
}


def compressed(*bundle: bytes, filled_to: int = 0) -> Reconciling:
    """A bundle as an attacker makes it."""
    raw = sds_pb2.Reconciling(bundle=bundle).SerializeToString()
    return Reconciling(packed=zlib.compress(raw).ljust(filled_to, b"\0"))


def carrier(said: Reconciling, sender: str = "mallory") -> bytes:
    """A sync message with a bundle."""
    name = f"{sender} {next(numbers)}"
    return CODEC.encode(Message(sender, name, CHANNEL, NOW_MS, reconciling=said))


def flood() -> Reconciling:
    """As many messages as one bundle may have, each with a reference to nothing."""
    return Reconciling(packed=packed([new(1) for _ in range(MAX_BUNDLED_MESSAGES)]))


def auto(name: str = "bob") -> SdsProtocol:
    return participant(name, self_tuning=True)


def opened(core: SdsProtocol, until_ms: int) -> int:
    """How many messages are taken out of bundles until then."""
    receiver, now_ms = core._receiver, NOW_MS  # noqa: SLF001
    assert isinstance(receiver, ReconcilingReceiver)
    with patch.object(receiver, "receive_bundled", wraps=receiver.receive_bundled) as opens:
        while (due_ms := core.agenda.next_ms) is not None and due_ms <= until_ms:
            now_ms = max(now_ms, due_ms)
            core.on_deadline(now_ms)
    return opens.call_count


def inbox_bytes(core: SdsProtocol) -> int:
    state = inside.state(core)
    assert isinstance(state, ReconcilingState)
    return state.reconciliation.inbox.size_bytes


@pytest.mark.usefixtures("states_unchecked")
@pytest.mark.parametrize("kind", BOMBS)
def test_a_bundle_is_read_in_proportion_to_its_bytes_on_the_air(kind: str) -> None:
    bob, data = auto(), carrier(compressed(*BOMBS[kind]()))
    most = min(len(data) // MESSAGE_BYTES, MAX_BUNDLED_MESSAGES)
    assert calls(lambda: bob.receive(data, NOW_MS)) < 15 * MAX_BUNDLED_MESSAGES
    assert inbox_bytes(bob) <= most * ENTRY_BYTES + EXPANSION * len(data)
    assert opened(bob, NOW_MS + 10 * SECOND) <= most
    told = taken(bob.events)
    assert [e.sender_id for e in told if isinstance(e, RepairBudgetReached)] == ["mallory"]
    give(bob, send(auto("alice"), b"honest"))
    assert b"honest" in delivered(bob)


@pytest.mark.parametrize("kind", BOMBS)
def test_what_waits_of_many_bundles_is_bounded_and_so_is_what_it_takes_in_memory(kind: str) -> None:
    bob, bundle = auto(), BOMBS[kind]()
    bombs = [carrier(compressed(*bundle, filled_to=100_000), f"mallory {n}") for n in range(20)]

    def receive() -> None:
        for data in bombs:
            bob.receive(data, NOW_MS)

    assert peak_bytes(receive) < INBOX_BYTES + 3 * MIB
    assert inbox_bytes(bob) <= INBOX_BYTES


@pytest.mark.parametrize("kind", ["empty", "of one byte", "of ten bytes"])
def test_an_entry_that_is_no_message_ends_its_bundle_and_names_who_sent_it(kind: str) -> None:
    bob = auto()
    bob.receive(carrier(compressed(*BOMBS[kind]())), NOW_MS)
    assert opened(bob, NOW_MS + SECOND) == 1
    rejected = only(events(bob, MessageRejected))
    assert (rejected.reason, rejected.sender_id) == (RejectionReason.MALFORMED, "mallory")
    assert inbox_bytes(bob) == 0


def test_what_stands_before_such_an_entry_is_taken_and_another_bundle_is_too() -> None:
    bob, first, second = auto(), new(), new()
    bob.receive(carrier(Reconciling(packed=packed([first, b"", new()]))), NOW_MS)
    bob.receive(carrier(Reconciling(packed=packed([second]))), NOW_MS)
    opened(bob, NOW_MS + SECOND)
    ids = [CODEC.decode(data).message_id for data in (first, second)]
    assert [event.message_id for event in events(bob, MessageReconciled)] == ids


@pytest.mark.usefixtures("states_unchecked")
@pytest.mark.parametrize("names", [*slow(1), 1_000])
def test_all_senders_together_have_so_many_messages_opened_in_a_second(names: int) -> None:
    bob, size, total, seconds = auto(), len(new(1)), 0, 4
    for second in range(seconds):
        now_ms = NOW_MS + second * SECOND
        for n in range(5):
            bob.receive(carrier(flood(), f"mallory {(5 * second + n) % names}"), now_ms)
        total += opened(bob, now_ms + SECOND - 1)
        assert inbox_bytes(bob) <= INBOX_BYTES
    allowed = OPENED_BYTES + seconds * OPENED_BYTES_PER_S
    assert allowed * 0.8 < total * (size + ENTRY_BYTES) < allowed * 1.05


def test_a_bundle_beside_a_flood_has_its_turn() -> None:
    bob, bundle = auto(), [new() for _ in range(100)]
    now_ms = NOW_MS
    for _ in range(15):
        now_ms += 200
        bob.receive(carrier(flood()), now_ms)
        opened(bob, now_ms)
    bob.receive(carrier(Reconciling(packed=packed(bundle)), "carol"), now_ms)
    bob.events.clear()
    opened(bob, now_ms + 3 * SECOND)
    came = [e.message_id for e in events(bob, MessageReconciled) if e.sender_id == "carol"]
    assert len(came) == 100


def test_a_sender_whose_messages_had_to_make_room_is_named_once_a_minute() -> None:
    bob, long = auto(), compressed(bytes(2_000_000), filled_to=100_000)
    for _ in range(20):
        bob.receive(carrier(long), NOW_MS)
    assert events(bob, RepairBudgetReached) == [RepairBudgetReached((), "mallory", in_all=True)]


def test_an_honest_bundle_of_the_longest_is_taken_whole_and_in_silence() -> None:
    bob, bundle = auto(), [new() for _ in range(MAX_BUNDLED_MESSAGES)]
    bob.receive(carrier(Reconciling(packed=packed(bundle)), "carol"), NOW_MS)
    assert opened(bob, NOW_MS + PAUSE_MS) == MAX_BUNDLED_MESSAGES
    told = taken(bob.events)
    assert not any(isinstance(e, (RepairBudgetReached, MessageRejected)) for e in told)


@pytest.mark.parametrize(
    "entry", [b"\x0a\x00", b"\x12\x00", b"\x1a\x00"], ids=["root", "list", "message"]
)
def test_too_many_parts_are_refused_before_anything_is_made_of_them(entry: bytes) -> None:
    said = entry * 400_000
    data = forge("m", content=None) + b"\x92\xa7\x0a" + varint(len(said)) + said
    bob = auto()
    assert bob.receive(data, NOW_MS).reason is RejectionReason.MALFORMED
    assert peak_bytes(lambda: bob.receive(data, NOW_MS)) < 200_000
