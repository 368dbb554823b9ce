"""Shared decoding of messages, once for all simulated receivers of the same bytes.

Without sharing, ten thousand participants would spend most of the time decoding the same 40 kB. A
decoded message never changes, so receivers may share it. Receivers share nothing else than decoded
messages.
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
"""Number of newest messages that are kept in decoded form."""


class SharingCodec:
    """Codec that decodes equal bytes only once."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._decoded: OrderedDict[bytes, Message | CodecError] = OrderedDict()

    def recognises(self, data: bytes) -> bool:
        """Return True if the bytes look like a message in this dialect."""
        return self._codec.recognises(data)

    def decode(self, data: bytes) -> Message:
        """Return the message in the bytes.

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
        """Return the bytes of a message, given the encoded causal history."""
        return self._codec.assemble(message, causal_history)

    def encode_causal_entry(self, entry: HistoryEntry) -> bytes:
        """Return the bytes of a causal history entry."""
        return self._codec.encode_causal_entry(entry)

    def _decode(self, data: bytes) -> Message | CodecError:
        try:
            return self._codec.decode(data)
        except CodecError as error:
            return error


def sharing(profile: WireProfile = SPEC) -> WireProfile:
    """Return the wire profile with a codec that shares decoded messages."""
    return replace(profile, codec=SharingCodec(profile.codec))


def sds_maker(options: SdsOptions, profile: WireProfile | None = None) -> MakeCore[SdsProtocol]:
    """Return a function that makes SDS cores of one dialect. Without a profile, all cores share
    decoded messages."""
    profile = profile or sharing()
    return partial(SdsProtocol, CHANNEL, options=options, profile=profile, listen_to=(profile,))


def checked(make: MakeCore[SdsProtocol]) -> MakeCore[SdsProtocol]:
    """Return a function that makes the same cores, checked against the table of message states."""

    def make_checked(*arguments: Any, **keywords: Any) -> SdsProtocol:
        with checking():
            return make(*arguments, **keywords)

    return make_checked
