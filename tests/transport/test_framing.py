"""Messages on networks that are not Waku's."""

import pytest

from reliable_channel.transport import Source, WakuFraming, WakuSettings

WRAPPING = WakuFraming(WakuSettings("/app/1/topic/proto"))


@pytest.mark.parametrize("payload", [b"", b"hello"])
@pytest.mark.parametrize("meta", [b"", b"m" * 64])
def test_a_message_is_carried_whole(payload: bytes, meta: bytes) -> None:
    envelope = WRAPPING.envelope(payload, timestamp_ns=5, ephemeral=False, meta=meta)
    received = WRAPPING.received(WRAPPING.body(envelope))
    assert received is not None
    assert (received.payload, received.meta, received.timestamp_ns) == (payload, meta, 5)
    assert (received.message_hash, received.source) == (envelope.message_hash, Source.LIVE)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        bytes(8),
        bytes(8) + b"\x01",  # a meta that is not there
        bytes(8) + b"\x05meta",
        b"\xff" * 8 + b"\x00payload",  # a time beyond Waku's
    ],
)
def test_what_is_no_message_is_none(body: bytes) -> None:
    assert WRAPPING.received(body) is None
