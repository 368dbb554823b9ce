"""Dialects: what a peer family does in its own way, in one value.

`SPEC` is the SDS specification as js-waku speaks it; `NIM` is nim-sds, which status-go and
logos-delivery use. A participant sends one dialect and listens to as many as it likes.

Mixing. A channel whose participants listen to both dialects is one channel: Lamport timestamps are
compared in milliseconds (a second of nim-sds is 1000 of them), so that all end with the same log,
in which every dependency of a message stands before it; acknowledgements and repair requests cross
the border, each filter read in the form of its sender's dialect. A repaired message is broadcast as
it was first sent. The clocks of nim-sds run ahead of the time in a busy channel: a participant that
listens to it should allow for that (`max_lamport_ahead_ms`, see `NIM`). But js-waku and nim-sds
read their own dialect alone: such a peer misses what is sent in the other one and waits for it, so
mix to move a channel over, not to bridge it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from .bloom import SPEC_BLOOM, BloomForm
from .clock import LamportClock, SecondsClock
from .dialects import Codec, NimCodec, SpecCodec
from .dialects.nim import MAX_CONTENT_BYTES
from .dialects.nim_bloom import NIM_BLOOM
from .ids import IdFunction, reliable_channel_id
from .message import Message
from .options import DAY_MS, RepairOptions, SdsOptions
from .repair.buffers import SPEC_TIMERS, RepairTimers
from .repair.nim import NIM_TIMERS


class NamedLayout(Protocol):
    """A layout of segments (`reliable_channel.segmentation.SegmentLayout`); the core knows no more
    of it than its name."""

    @property
    def name(self) -> str:
        """What options and texts call it."""
        ...


@dataclass(frozen=True, slots=True)
class WireProfile:
    """A dialect: bytes, clock, filters, ids and repair of one peer family."""

    name: str
    codec: Codec = field(repr=False)
    clock: Callable[[int], LamportClock]
    """Makes the Lamport clock, given the time in milliseconds: its unit, and how it steps."""
    bloom: BloomForm
    id_function: IdFunction
    repair_timers: RepairTimers
    options: SdsOptions
    """The defaults of the family."""
    requires_sender: bool = True
    """True if a message without `sender_id` is refused."""
    has_ephemeral: bool = True
    """True if ephemeral messages can be expressed."""
    refers_to_syncs: bool = False
    """True if peers take sync messages for messages without content and so put them into their
    causal histories, where they must be known to be no messages that anybody waits for. None is
    sent then, not for repair requests either, unless `sync_min_interval_ms` is given."""
    max_content_bytes: int | None = None
    """The content that peers take at most, where that is bounded."""
    segmentation: str | NamedLayout | None = None
    """The layout of segments in which peers send every payload, or the name of one of
    `reliable_channel.segmentation`, of which the core knows nothing; None where they do not."""
    encryption_order: str = "sds-then-encrypt"
    """True if peers encrypt whole SDS messages, or with `encrypt-then-sds` their contents alone."""
    marker: bytes | None = None
    """What stands beside each message on the transport, and must; None where nothing does."""

    def kept_sync(self, sync: Message, data: bytes) -> bytes:
        """A sync message to be kept for references to it: that it exists and what it waits for
        is a tenth of its bytes, and its filter is old news by then. One that is signed stays whole,
        as it proves its sender only so."""
        if sync.signature is not None:
            return data
        return self.codec.encode(replace(sync, bloom_filter=None, repair_request=()))


SPEC: Final = WireProfile(
    name="spec",
    codec=SpecCodec(),
    clock=LamportClock,
    bloom=SPEC_BLOOM,
    id_function=reliable_channel_id,
    repair_timers=SPEC_TIMERS,
    options=SdsOptions(),
)

NIM: Final = WireProfile(
    name="nim",
    codec=NimCodec(),
    clock=SecondsClock,
    bloom=NIM_BLOOM,
    id_function=reliable_channel_id,
    repair_timers=NIM_TIMERS,
    options=SdsOptions(
        causal_history_size=10,
        # Peers would put sync messages into their histories, in place of what others refer to.
        sync_min_interval_ms=0,
        # The clock of nim-sds runs ahead by a second with each message beyond one a second, so a
        # day is 86,400 honest messages.
        max_lamport_ahead_ms=365 * DAY_MS,
        repair=RepairOptions(t_max_ms=300_000),
    ),
    requires_sender=False,
    has_ephemeral=False,
    refers_to_syncs=True,
    max_content_bytes=MAX_CONTENT_BYTES,
    segmentation="nim-segmentation",
    # logos-delivery encrypted only contents for a while (#4231). A reviewer noted that ids and
    # causal history can be read then (#4239); in its newest tests whole messages are encrypted.
    encryption_order="sds-then-encrypt",
    marker=b"RELIABLE-CHANNEL-API/1",
)

PROFILES: Final = {profile.name: profile for profile in (SPEC, NIM)}
"""The built-in profiles."""


def understood(profile: WireProfile) -> tuple[WireProfile, ...]:
    """What a participant listens to that sends a dialect: the built-in ones, and its own before
    them where it is another one, as they might take its messages for theirs."""
    if PROFILES.get(profile.name) is profile:
        return tuple(PROFILES.values())
    return profile, *(other for other in PROFILES.values() if other.name != profile.name)


def wire_profile(name: str) -> WireProfile:
    """The dialect of that name.

    Raises:
        ValueError: there is none.
    """
    if name not in PROFILES:
        known = ", ".join(map(repr, PROFILES))
        raise ValueError(f"wire_profile is {name!r}; known are {known}")
    return PROFILES[name]
