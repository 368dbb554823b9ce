"""Wire profiles, the dialects of SDS: the parts of one, and the guard around those of plugins.

A profile is often another one with something replaced: `replace(SPEC, name="mine", codec=…)`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import eq
from typing import Final

from .guard import FUNCTION, Contract, Guard, instance
from .options import ENCRYPTION_ORDERS
from .policies import guarded_id_function
from .sds.bloom import BloomFilterError, BloomForm, BloomLayout, BloomParameters
from .sds.clock import LamportClock
from .sds.message import HistoryEntry, Message
from .sds.options import RepairOptions, SdsOptions
from .sds.profile import NIM, SPEC, WireProfile
from .sds.repair import RepairTimers
from .sds.wire import Codec, CodecError
from .segmentation import LAYOUTS, SegmentLayout

__all__ = [
    "NIM",
    "SPEC",
    "BloomFilterError",
    "BloomForm",
    "BloomLayout",
    "BloomParameters",
    "Codec",
    "CodecError",
    "HistoryEntry",
    "LamportClock",
    "Message",
    "RepairOptions",
    "RepairTimers",
    "SdsOptions",
    "SegmentLayout",
    "WireProfile",
    "guarded_wire_profile",
]

_SAMPLE_MS: Final = 1_700_000_000_000
_LAYOUTS: Final = [layout.name for layout in LAYOUTS]


def _has(*names: str) -> Callable[[object], bool]:
    return lambda value: all(hasattr(value, name) for name in names)


def _is_layout(value: object) -> bool:
    return value is None or value in _LAYOUTS or isinstance(value, SegmentLayout)


_PARTS: Final = {
    "codec": Contract(
        _has("recognises", "decode", "encode", "assemble", "encode_causal_entry"), "a Codec"
    ),
    "bloom": Contract(_has("byte_flip", "hash_pair", "write", "read"), "a BloomForm"),
    "clock": FUNCTION,
    "id_function": FUNCTION,
    "repair_timers": instance(RepairTimers),
    "options": instance(SdsOptions),
    "marker": Contract(lambda value: isinstance(value, bytes | None), "bytes or None"),
    "encryption_order": Contract(
        lambda value: value in ENCRYPTION_ORDERS, " or ".join(map(repr, ENCRYPTION_ORDERS))
    ),
    "segmentation": Contract(_is_layout, f"None, {', '.join(_LAYOUTS)} or a SegmentLayout"),
}


def guarded_wire_profile(profile: WireProfile, name: str, guard: Guard) -> WireProfile:
    """The profile with all of its functions under guard.

    Raises:
        PluginError: its name differs from the registered one, or a part of it cannot be used.
    """
    called = Contract(lambda value: value == name, repr(name))
    for part, contract in ({"name": called} | _PARTS).items():
        guard.checked(f"`{part}` of the wire profile", getattr(profile, part), contract, "must be")
    timers = profile.repair_timers
    guarded = replace(
        profile,
        codec=GuardedCodec(profile.codec, guard),
        bloom=GuardedBloom(profile.bloom, guard),
        clock=guard.function("the clock", profile.clock, instance(LamportClock)),
        id_function=guarded_id_function(profile.id_function, guard),
        repair_timers=RepairTimers(
            guard.function("t_req", timers.t_req, instance(int)),
            guard.function("t_resp", timers.t_resp, instance(int)),
            guard.function("in_response_group", timers.in_response_group, instance(bool)),
        ),
    )
    _try(guarded, guard)
    return guarded


class GuardedCodec:
    """The codec of a plugin: raises `CodecError`, or `PluginError` where it breaks the contract."""

    def __init__(self, codec: Codec, guard: Guard) -> None:
        self.recognises = guard.function("`recognises` of the codec", codec.recognises, _BOOL)
        self.decode = guard.function("`decode` of the codec", codec.decode, _MESSAGE, _MALFORMED)
        self.encode = guard.function("`encode` of the codec", codec.encode, _BYTES, _MALFORMED)
        self.assemble = guard.function(
            "`assemble` of the codec", codec.assemble, _BYTES, _MALFORMED
        )
        self.encode_causal_entry = guard.function(
            "`encode_causal_entry` of the codec", codec.encode_causal_entry, _BYTES, _MALFORMED
        )


class GuardedBloom:
    """The bloom form of a plugin, in the same way."""

    def __init__(self, form: BloomForm, guard: Guard) -> None:
        self.byte_flip = form.byte_flip
        self.hash_pair = guard.function("`hash_pair` of the bloom form", form.hash_pair, _TUPLE)
        self.write = guard.function("`write` of the bloom form", form.write, _BYTES)
        self.read = guard.function(
            "`read` of the bloom form", form.read, _TUPLE, (BloomFilterError,)
        )


_BOOL, _BYTES, _MESSAGE, _TUPLE = map(instance, (bool, bytes, Message, tuple))
_MALFORMED: Final = (CodecError,)


def _try(profile: WireProfile, guard: Guard) -> None:
    """Encode and decode a sample, so that a broken codec is found before the first message."""
    codec, lamport_timestamp = profile.codec, profile.clock(_SAMPLE_MS).tick(_SAMPLE_MS)
    sample = Message("sender", "id", "channel", lamport_timestamp, content=b"content")
    with guard.watching("the round trip of a sample through the codec"):
        data = codec.encode(sample)
        recognised, read = codec.recognises(data), codec.decode(data)
    recognises = Contract(bool, "True for a message of the codec")
    guard.checked("`recognises` of the codec", recognised, recognises)
    for name in ("sender_id", "message_id", "channel_id", "lamport_timestamp", "content"):
        before = getattr(sample, name)
        same = Contract(partial(eq, before), f"the encoded {before!r}")
        guard.checked(f"`{name}` of a decoded sample of the codec", getattr(read, name), same)
