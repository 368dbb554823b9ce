"""Dialects of plugins: sent, understood, restored, and those that break their word."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest

from reliable_channel import ChannelHub, ChannelOptions, ReliableChannel
from reliable_channel._plugins.hooks import Register, hookimpl
from reliable_channel._plugins.loading import process_registry, registry_with
from reliable_channel._plugins.resolve import make_wire_profile
from reliable_channel.diagnostics import MessageMissing, MessageRejected, RejectionReason
from reliable_channel.errors import PluginError, StateMismatch
from reliable_channel.hub import channel_of
from reliable_channel.options import Limits
from reliable_channel.segmentation import Segment
from reliable_channel.spi import (
    NIM,
    SPEC,
    CodecError,
    HistoryEntry,
    Message,
    SdsOptions,
    WireProfile,
)
from reliable_channel.state import MemoryStateStore
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import CHANNEL_ID, Told, listening, make_channel, now_ns

MAGIC = b"\xffshout"


class ShoutCodec:
    """The bytes of `spec` behind a word of our own."""

    def recognises(self, data: bytes) -> bool:
        return data.startswith(MAGIC)

    def decode(self, data: bytes) -> Message:
        if not self.recognises(data):
            raise CodecError("nobody shouts here")
        return SPEC.codec.decode(data[len(MAGIC) :])

    def encode(self, message: Message) -> bytes:
        return MAGIC + SPEC.codec.encode(message)

    def assemble(self, message: Message, causal_history: bytes) -> bytes:
        return MAGIC + SPEC.codec.assemble(message, causal_history)

    def encode_causal_entry(self, entry: HistoryEntry) -> bytes:
        return SPEC.codec.encode_causal_entry(entry)


class InHalves:
    """A layout of segments of its own: each payload in two."""

    name = "halves"
    min_segment_size_bytes = 1

    def chunk_size_bytes(self, segment_size_bytes: int) -> int:
        return segment_size_bytes

    def max_segments(self, max_total_segments: int) -> int:
        return max_total_segments

    def encode(self, segment: Segment) -> bytes:
        place = bytes([segment.index, segment.data_segment_count])
        return b"half" + place + segment.original_payload_hash + segment.payload

    def decode(self, data: bytes) -> Segment | None:
        if not data.startswith(b"half"):
            return None
        return Segment(data[6:38], None, data[4], data[5], 0, False, data[38:])


SHOUT = replace(
    SPEC,
    name="shout",
    codec=ShoutCodec(),
    id_function=lambda sender, at_ns, content: f"{sender} {at_ns}",
    marker=b"LOUD",
    segmentation=InHalves(),
    options=replace(SdsOptions(), causal_history_size=7),
)


class Shouting:
    """A plugin that knows a dialect."""

    def __init__(self, profile: Any = SHOUT, name: str = "shout") -> None:
        self.profile, self.name = profile, name

    @hookimpl
    def register_wire_profiles(self, register: Register) -> None:
        register(self.name, self.profile)


def shouting(network: MemoryNetwork, name: str, **arguments: Any) -> ReliableChannel:
    return make_channel(
        network.transport(),
        name,
        **{"wire_profile": "shout", "plugins": [Shouting()], **arguments},
    )


def heard(told: Told, count: int) -> bool:
    return len(told.contents) == count


# -- a dialect at work -----------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_channel_sends_the_dialect_and_understands_it() -> None:
    network = MemoryNetwork()
    async with listening(
        shouting(network, "bob", segment_size_bytes=5, limits=Limits(payload_bytes=50))
    ) as bob:
        alice = shouting(network, "alice", segment_size_bytes=5, limits=Limits(payload_bytes=50))
        async with alice:
            request = await alice.send(b"hello you")
            await bob.until(partial(heard, bob, 1))
    assert bob.contents == [b"hello you"]
    assert len(request.message_ids) == 2 and request.message_id.startswith("alice ")
    payloads = [received.payload for received in network.store.values()]
    assert payloads and all(payload.startswith(MAGIC) for payload in payloads)
    assert alice.options.profile.marker == b"LOUD"


PLAIN: dict[str, Any] = {"segmentation": "none", "marker": b""}


@pytest.mark.anyio
async def test_it_understands_the_others_and_they_refuse_it() -> None:
    network = MemoryNetwork()
    spec = make_channel(network.transport(), "spec")
    nim = make_channel(network.transport(), "nim", wire_profile="nim", **PLAIN)
    loud = shouting(network, "loud", **PLAIN)
    async with listening(spec) as by_spec, listening(nim), listening(loud) as by_loud:
        await spec.send(b"of spec")
        await nim.send(b"of nim")
        await by_loud.until(partial(heard, by_loud, 2))
        await loud.send(b"loud")
        refused = await by_spec.first(MessageRejected)
    assert refused.reason in (RejectionReason.MALFORMED, RejectionReason.OTHER_DIALECT)


@pytest.mark.anyio
async def test_what_waited_before_a_restart_is_read_in_its_dialect() -> None:
    network, state = MemoryNetwork(), MemoryStateStore()
    quiet = {**PLAIN, "retrieval_strategy": "none", "state": state}
    missed = (HistoryEntry("m1", None, "alice"),)
    now_ms = now_ns() // 1_000_000
    message = Message("alice", "m2", CHANNEL_ID, now_ms, missed, content=b"refers")
    sender = network.transport()
    data = SHOUT.codec.encode(message)
    envelope = sender.envelope(data, timestamp_ns=now_ns(), ephemeral=False)
    bob = shouting(network, "bob", **quiet)
    async with listening(bob) as told:
        await sender.publish(envelope)
        await told.first(MessageMissing)
    again = shouting(network, "bob", **quiet)
    async with again:
        assert again.statistics().sds.incoming == 1
    with pytest.raises(StateMismatch, match="shout"):
        await make_channel(network.transport(), "bob", state=state).open()


@pytest.mark.anyio
async def test_a_hub_reads_the_dialects_of_its_channels() -> None:
    data = SHOUT.codec.encode(Message("alice", "m1", CHANNEL_ID, 1, content=b"hello"))
    hub = ChannelHub("http://127.0.0.1:1")
    channels = hub._hub  # noqa: SLF001
    assert channels.channel_of(data) is None
    made = hub.channel(
        channel_id=CHANNEL_ID, sender_id="bob", wire_profile="shout", plugins=[Shouting()]
    )
    assert made.options.profile.name == "shout"
    assert channels.channel_of(data) == CHANNEL_ID


def test_what_two_dialects_read_differently_is_for_all_of_the_topic() -> None:
    class Wide(ShoutCodec):
        def recognises(self, data: bytes) -> bool:
            return True

        def decode(self, data: bytes) -> Message:
            return Message("x", "y", "another channel")

    data = SPEC.codec.encode(Message("alice", "m1", CHANNEL_ID, 1, content=b"hello"))
    assert channel_of(data) == CHANNEL_ID
    assert channel_of(data, (SPEC, NIM, replace(SHOUT, codec=Wide()))) is None
    assert channel_of(data, (SPEC, changed(codec=Broken(recognises=fail)))) == CHANNEL_ID


def test_the_defaults_are_the_familys() -> None:
    made = ReliableChannel(
        channel_id="general", sender_id="alice", wire_profile="shout", plugins=[Shouting()]
    )
    assert made.options.causal_history_size == 7
    assert repr(made.options.wire_profile).startswith("WireProfile(name='shout'")
    given = ChannelOptions(wire_profile=SHOUT)
    assert ReliableChannel(
        channel_id="general", sender_id="alice", options=given
    ).options.profile is SHOUT  # fmt: skip


def test_those_that_come_along_fill_the_same_hook() -> None:
    assert make_wire_profile(process_registry(), "spec") is SPEC
    assert make_wire_profile(process_registry(), "nim") is NIM
    with pytest.raises(ValueError, match=r"^`wire_profile` must be one of nim, spec \(got 'go'"):
        make_wire_profile(process_registry(), "go")


# -- dialects that break their word ----------------------------------------------------------------


def fail(*_: object) -> Any:
    raise LookupError("lost my way")


def changed(**parts: Any) -> WireProfile:
    return replace(SHOUT, **parts)


class Broken(ShoutCodec):
    """A codec of which one method is replaced."""

    def __init__(self, **methods: Callable[..., Any]) -> None:
        for name, method in methods.items():
            setattr(self, name, method)


@pytest.mark.parametrize(
    ("profile", "text"),
    [
        (
            "no.such.module:SHOUT",
            "wire profile 'shout': import of 'no.such.module:SHOUT' failed: ModuleNotFound",
        ),
        (5, r"wire profile 'shout' must be of type WireProfile \(got 5\)"),
        (
            changed(name="other"),
            r"wire profile 'shout' must provide .* under its own name \(got 'other'\)",
        ),
    ],
    ids=["place", "type", "name"],
)
def test_a_profile_that_cannot_be_used_is_named(profile: Any, text: str) -> None:
    registry = registry_with([Shouting(profile)])
    with pytest.raises(PluginError, match=f"^plugin 'Shouting': {text}"):
        make_wire_profile(registry, "shout")


def test_a_name_that_two_claim_names_both() -> None:
    with pytest.raises(PluginError, match=r"'nim' .* twice, by 'built in' and by 'Shouting'"):
        registry_with([Shouting(changed(name="nim"), "nim")])


@pytest.mark.anyio
async def test_an_error_of_a_codec_ends_its_channel_and_names_the_plugin() -> None:
    network = MemoryNetwork()
    broken = [Shouting(changed(codec=Broken(decode=fail)))]
    with pytest.raises(BaseExceptionGroup) as raised:
        async with listening(shouting(network, "bob", plugins=broken, **PLAIN)):
            async with shouting(network, "alice", **PLAIN) as alice:
                await alice.send(b"hello")
                await anyio.sleep(5)
    assert raised.group_contains(
        LookupError, match="^lost my way\nplugin 'Shouting': wire profile 'shout'$"
    )
