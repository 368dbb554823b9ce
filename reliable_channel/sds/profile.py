"""Dialects, each with the properties of one peer family.

`SPEC` is the SDS specification as js-waku implements it. `NIM` is nim-sds, which status-go and
logos-delivery use. A participant sends one dialect, and can listen to several dialects.

If all participants listen to both dialects, they share one channel. Lamport timestamps are compared
in milliseconds (a second of nim-sds is 1000 of them). All participants therefore end with the same
log. Acknowledgements and repair requests work across dialects, and each filter is read in the form
of its sender's dialect. A repaired message is broadcast in its first form. In a busy channel the
clocks of nim-sds run ahead of real time. A participant that listens to nim-sds must allow this
difference (`max_lamport_ahead_ms`). js-waku and nim-sds read only their own dialect, and wait for
messages of the other dialect. Mix dialects to move a channel to another dialect, not to bridge two
channels.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from .bloom import SPEC_BLOOM, BloomForm
from .clock import LamportClock, SecondsClock
from .dialects import Codec, NimCodec, SpecCodec
from .dialects.nim import MAX_CONTENT_BYTES, NIM_BLOOM
from .ids import IdFunction, reliable_channel_id
from .message import Message
from .options import DAY_MS, RepairOptions, SdsOptions
from .repair.buffers import SPEC_TIMERS, RepairTimers
from .repair.nim import NIM_TIMERS


class NamedLayout(Protocol):
    """Named layout of segments (`reliable_channel.segmentation.SegmentLayout`). The core uses only
    the name."""

    @property
    def name(self) -> str:
        """Name of the layout in options and texts."""
        ...


@dataclass(frozen=True, slots=True)
class WireProfile:
    """Dialect of one peer family, with its encoding, clock, filters, ids and repair."""

    name: str
    codec: Codec = field(repr=False)
    clock: Callable[[int], LamportClock]
    """Function that makes the Lamport clock for a start time (ms). The clock determines the unit
    and the steps of Lamport timestamps."""
    bloom: BloomForm
    id_function: IdFunction
    repair_timers: RepairTimers
    options: SdsOptions
    """Default options of the peer family."""
    requires_sender: bool = True
    """True if a message without `sender_id` is refused."""
    has_ephemeral: bool = True
    """True if the dialect can express ephemeral messages."""
    refers_to_syncs: bool = False
    """True if peers treat sync messages as messages without content. Sync messages then enter
    causal histories, where no participant may wait for a sync. Therefore a participant sends no
    syncs, even for repair requests, unless `sync_min_interval_ms` is set."""
    max_content_bytes: int | None = None
    """Maximum content length that peers accept (bytes), or None without a limit."""
    segmentation: str | NamedLayout | None = None
    """Segment layout (or its name) in which peers send every payload. The layout is None if peers
    use no segments."""
    encryption_order: str = "sds-then-encrypt"
    """Order of encryption, `sds-then-encrypt` for whole messages or `encrypt-then-sds` for
    contents."""
    marker: bytes | None = None
    """Marker that must be sent with each message on the transport, or None."""

    def kept_sync(self, sync: Message, data: bytes) -> bytes:
        """Return the shortened bytes of a sync message that are kept for references to the message.
        A tenth of the bytes is enough, because the filter is soon out of date. A signed sync
        message stays whole, because its signature covers all bytes."""
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
"""Built-in dialects by their names."""


def understood(profile: WireProfile) -> tuple[WireProfile, ...]:
    """Return the dialects that a participant listens to, which are its own and the built-in
    dialects. An own dialect comes first, because a built-in dialect might accept its messages."""
    if PROFILES.get(profile.name) is profile:
        return tuple(PROFILES.values())
    return profile, *(other for other in PROFILES.values() if other.name != profile.name)


def wire_profile(name: str) -> WireProfile:
    """Return the dialect with the given name.

    Raises:
        ValueError: the name is unknown.
    """
    if name not in PROFILES:
        known = ", ".join(map(repr, PROFILES))
        raise ValueError(f"wire_profile is {name!r}; known profiles are {known}")
    return PROFILES[name]
