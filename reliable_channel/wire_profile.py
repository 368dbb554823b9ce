"""Wire profiles, the dialects of SDS: what it takes to make one, and how those of plugins are held
to their word.

A profile is often another one with something replaced: `replace(SPEC, name="mine", codec=…)`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from .errors import PluginError
from .options import ENCRYPTION_ORDERS
from .policies import checked_id_function
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
    "checked_wire_profile",
]

P = ParamSpec("P")
T = TypeVar("T")

_SAMPLE_MS: Final = 1_700_000_000_000


def checked_wire_profile(profile: WireProfile, name: str, whose: str) -> WireProfile:
    """The profile; whatever its parts raise, or return beside what they must, is told as `whose`.

    Raises:
        PluginError: it is called otherwise than asked for, or a part of it cannot be used.
    """
    _check(profile, name, whose)
    codec, timers = profile.codec, profile.repair_timers
    checked = replace(
        profile,
        codec=CheckedCodec(codec, whose),
        bloom=CheckedBloom(profile.bloom, whose),
        clock=_held(profile.clock, LamportClock, f"the clock of {whose}"),
        id_function=checked_id_function(profile.id_function, f"the id_function of {whose}"),
        repair_timers=RepairTimers(
            _held(timers.t_req, int, f"t_req of {whose}"),
            _held(timers.t_resp, int, f"t_resp of {whose}"),
            _held(timers.in_response_group, bool, f"in_response_group of {whose}"),
        ),
    )
    _try(checked, whose)
    return checked


class CheckedCodec:
    """The codec of a plugin: raises `CodecError`, or `PluginError` for whatever it may not do."""

    def __init__(self, codec: Codec, whose: str) -> None:
        of = f"of the codec of {whose}"
        self.recognises = _held(codec.recognises, bool, f"recognises {of}")
        self.decode = _held(codec.decode, Message, f"decode {of}", CodecError)
        self.encode = _held(codec.encode, bytes, f"encode {of}", CodecError)
        self.assemble = _held(codec.assemble, bytes, f"assemble {of}", CodecError)
        self.encode_causal_entry = _held(
            codec.encode_causal_entry, bytes, f"encode_causal_entry {of}", CodecError
        )


class CheckedBloom:
    """The bloom form of a plugin, in the same way."""

    def __init__(self, form: BloomForm, whose: str) -> None:
        of = f"of the bloom form of {whose}"
        self.byte_flip = form.byte_flip
        self.hash_pair = _held(form.hash_pair, tuple, f"hash_pair {of}")
        self.write = _held(form.write, bytes, f"write {of}")
        self.read = _held(form.read, tuple, f"read {of}", BloomFilterError)


def _held(
    function: Callable[P, T], kind: type, whose: str, passes: type[Exception] | None = None
) -> Callable[P, T]:
    """The function, which raises `PluginError` for all that it may not raise or return."""

    @wraps(function, assigned=(), updated=())
    def held(*arguments: P.args, **keywords: P.kwargs) -> T:
        try:
            answer = function(*arguments, **keywords)
        except Exception as error:
            if passes is not None and isinstance(error, passes):
                raise
            raise PluginError(f"{whose} failed: {error!r}") from error
        if not isinstance(answer, kind):
            raise PluginError(f"{whose} returned {answer!r:.80}; allowed is {kind.__name__}")
        return answer

    return held


def _check(profile: WireProfile, name: str, whose: str) -> None:
    layouts = [layout.name for layout in LAYOUTS]
    codec_has = ("recognises", "decode", "encode", "assemble", "encode_causal_entry")
    bloom_has = ("byte_flip", "hash_pair", "write", "read")
    layout, orders = profile.segmentation, ENCRYPTION_ORDERS
    for part, fits, allowed in (
        ("name", profile.name == name, repr(name)),
        ("codec", _has(profile.codec, codec_has), "a Codec"),
        ("bloom", _has(profile.bloom, bloom_has), "a BloomForm"),
        ("clock", callable(profile.clock), "a function"),
        ("id_function", callable(profile.id_function), "a function"),
        ("repair_timers", isinstance(profile.repair_timers, RepairTimers), "RepairTimers"),
        ("options", isinstance(profile.options, SdsOptions), "SdsOptions"),
        ("marker", isinstance(profile.marker, bytes | None), "bytes and None"),
        ("encryption_order", profile.encryption_order in orders, " and ".join(orders)),
        (
            "segmentation",
            layout is None or layout in layouts or isinstance(layout, SegmentLayout),
            f"None, {', '.join(layouts)} and a SegmentLayout",
        ),
    ):
        if not fits:
            value = getattr(profile, part)
            raise PluginError(f"{part} of {whose} is {value!r:.80}; allowed is {allowed}")


def _has(value: object, names: tuple[str, ...]) -> bool:
    return all(hasattr(value, name) for name in names)


def _try(profile: WireProfile, whose: str) -> None:
    """Have a message written and read: better here than with the first one that counts."""
    codec, lamport_timestamp = profile.codec, profile.clock(_SAMPLE_MS).tick(_SAMPLE_MS)
    sample = Message("sender", "id", "channel", lamport_timestamp, content=b"content")
    try:
        data = codec.encode(sample)
        recognised, read = codec.recognises(data), codec.decode(data)
    except CodecError as error:
        raise PluginError(f"{whose} cannot write a message and read it again: {error}") from error
    if not recognised:
        raise PluginError(f"{whose} does not recognise a message that it has written")
    for name in ("sender_id", "message_id", "channel_id", "lamport_timestamp", "content"):
        before, after = getattr(sample, name), getattr(read, name)
        if before != after:
            raise PluginError(f"{whose} writes {name} {before!r} and reads {after!r:.80}")
