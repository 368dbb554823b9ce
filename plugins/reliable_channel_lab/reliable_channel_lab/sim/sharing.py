"""Shared decoding: one decoded message for all simulated receivers of the same bytes.

Ten thousand participants that each decode the same 40 KB would mostly decode. A decoded message
never changes, so they may share it. Everything else is done separately.
"""

from collections import OrderedDict
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reliable_channel.sds import SPEC, Message, SdsOptions, SdsProtocol, WireProfile
from reliable_channel.sds.dialects import Codec, CodecError
from reliable_channel.sds.message import HistoryEntry
from reliable_channel.sds.states import checking

from .world import CHANNEL, MakeCore

KEPT: Final = 2_000
"""Number of newest messages that are kept decoded."""


class SharingCodec:
    """Codec that decodes equal bytes once."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._decoded: OrderedDict[bytes, Message | CodecError] = OrderedDict()

    def recognises(self, data: bytes) -> bool:
        """Return True if this looks like a message in this dialect."""
        return self._codec.recognises(data)

    def decode(self, data: bytes) -> Message:
        """Decode one message.

        Raises:
            CodecError: it is none.
        """
        known = self._decoded.get(data)
        if known is None:
            known = self._decoded[data] = self._decode(data)
            if len(self._decoded) > KEPT:
                self._decoded.popitem(last=False)
        if isinstance(known, CodecError):
            raise known
        return known

    def encode(self, message: Message) -> bytes:
        return self._codec.encode(message)

    def assemble(self, message: Message, causal_history: bytes) -> bytes:
        """Encode `message` with an already encoded causal history."""
        return self._codec.assemble(message, causal_history)

    def encode_causal_entry(self, entry: HistoryEntry) -> bytes:
        """Encode one entry of a causal history."""
        return self._codec.encode_causal_entry(entry)

    def _decode(self, data: bytes) -> Message | CodecError:
        try:
            return self._codec.decode(data)
        except CodecError as error:
            return error


def sharing(profile: WireProfile = SPEC) -> WireProfile:
    """Return the same dialect with a shared codec."""
    return replace(profile, codec=SharingCodec(profile.codec))


def sds_maker(options: SdsOptions, profile: WireProfile | None = None) -> MakeCore[SdsProtocol]:
    """Return a maker of SDS cores that use one dialect. None means a `sharing` one."""
    profile = profile or sharing()
    return partial(SdsProtocol, CHANNEL, options=options, profile=profile, listen_to=(profile,))


def checked(make: MakeCore[SdsProtocol]) -> MakeCore[SdsProtocol]:
    """Return a maker of the same cores with a check of each step against the table of message
    states."""

    def make_checked(*arguments: Any, **keywords: Any) -> SdsProtocol:
        with checking():
            return make(*arguments, **keywords)

    return make_checked
