"""`python broken_peer.py DEFECT …`: our peer with one rule broken."""

import os
import sys
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from reliable_channel.cli import peer, run
from reliable_channel.sds import acknowledgements, clock, outgoing
from reliable_channel.sds.dialects import spec
from reliable_channel.sds.dialects.codec import CodecError
from reliable_channel.sds.ids import RecentIds
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel.sds.repair import buffers
from reliable_channel.sds.search import ReferenceSearch
from reliable_channel.segmentation import segmenter

Codec = spec.SpecCodec
Line = dict[str, Any]


def _put(owner: object, name: str, value: object) -> None:
    setattr(owner, name, value)


def _assembled(change: Callable[[Message], Message], history: bool = True) -> Callable[[], None]:
    """Change each message that is sent."""
    true = Codec.assemble

    def assemble(self: Codec, message: Message, causal_history: bytes) -> bytes:
        return true(self, change(message), causal_history if history else b"")

    return partial(_put, Codec, "assemble", assemble)


def _decoded(change: Callable[[Message], Message]) -> Callable[[], None]:
    """Change each message that is received."""
    true = Codec.decode

    def decode(self: Codec, *data: Any) -> Message:
        return change(true(self, *data))

    return partial(_put, Codec, "decode", decode)


def _patched(owner: object, name: str, value: object) -> Callable[[], None]:
    return partial(_put, owner, name, value)


def _lines(change: Callable[[Line], list[Line]]) -> Callable[[], None]:
    """Change what is written to standard output."""

    def broken() -> None:
        true = peer.write
        peer.write = lambda line: [true(each) for each in change(line)]  # type: ignore[assignment]

    return broken


def _flags(*added: str, without: tuple[str, ...] = ()) -> Callable[[], None]:
    """Change the command line; of a flag that is given twice, the last one counts."""

    def broken() -> None:
        for flag in without:
            if flag in sys.argv:
                at = sys.argv.index(flag)
                del sys.argv[at : at + (1 if flag == "--rate-limit-enabled" else 2)]
        sys.argv += added

    return broken


def _refers_to_syncs() -> None:
    syncs, decode, assemble = list[str](), Codec.decode, Codec.assemble

    def decoded(self: Codec, *data: Any) -> Message:
        found = decode(self, *data)
        if not found.content:
            syncs.append(found.message_id)
        return found

    def assembled(self: Codec, message: Message, causal_history: bytes) -> bytes:
        more = b"".join(self.encode_causal_entry(HistoryEntry(each)) for each in syncs)
        return assemble(self, message, causal_history + more)

    _put(Codec, "decode", decoded)
    _put(Codec, "assemble", assembled)


def _dies_of_noise() -> None:
    true = Codec.decode

    def decode(self: Codec, *data: Any) -> Message:
        try:
            return true(self, *data)
        except CodecError:
            os._exit(70)

    _put(Codec, "decode", decode)
    _put(Codec, "recognises", lambda self, data: True)


def _needs_whole_filters(found: Message) -> Message:
    if len(found.bloom_filter or b"") != 18_752:
        raise CodecError("a filter of another size")
    return found


def _dies_of_cycles(found: Message) -> Message:
    if found.message_id in found.causal_ids:
        os._exit(70)
    return found


def _swallows_after_loss() -> Callable[[Line], list[Line]]:
    lost = list[str]()

    def change(line: Line) -> list[Line]:
        if line["event"] == "message_lost":
            lost.append(line["message_id"])
        swallowed = lost and line["event"] == "message_received"
        return [] if swallowed and b64decode(line["payload"]) == b"two" else [line]

    return change


def _twice(line: Line) -> list[Line]:
    return [line, line] if line["event"] == "message_received" else [line]


def _backwards(line: Line) -> list[Line]:
    return [line | {"entries": line["entries"][::-1]}] if line["event"] == "log" else [line]


def _renamed_order(line: Line) -> list[Line]:
    """The log of one of two is backwards."""
    return _backwards(line) if "other" in sys.argv else [line]


def _lossy_segments() -> None:
    true = segmenter.Segmenter.split

    def split(self: segmenter.Segmenter, payload: bytes) -> list[bytes]:
        return true(self, payload)[:-1] or [payload]

    segmenter.Segmenter.split = split  # type: ignore[method-assign]


def _no_acknowledgements() -> None:
    acknowledgements.AcknowledgementReview.review = (  # type: ignore[method-assign]
        lambda self, message, form: []
    )


DEFECTS: dict[str, Callable[[], None]] = {
    "fields-are-set": _assembled(lambda sent: replace(sent, channel_id="another")),
    "filter-has-what-was-received": _assembled(
        lambda sent: replace(sent, bloom_filter=bytes(len(sent.bloom_filter or b"")))
    ),
    "history-has-what-was-delivered": _assembled(lambda sent: sent, history=False),
    "clock-increases": _assembled(lambda sent: replace(sent, lamport_timestamp=1)),
    "clock-follows-a-delivered-message": _patched(
        clock.LamportClock, "merge", lambda self, other: None
    ),
    "clock-resists-the-far-future": _flags("--max-lamport-ahead-ms", str(10**15)),
    "unacknowledged-is-sent-again": _flags("--retry-interval-ms", str(10**9)),
    "acknowledged-is-not-sent-again": _patched(
        outgoing.OutgoingBuffer, "remove", lambda self, ids: []
    ),
    "sync-messages-are-sent": _flags("--sync-min-interval-ms", "0"),
    "sync-messages-are-not-referred-to": _refers_to_syncs,
    "replayed-requests-are-answered-once": _patched(
        RecentIds, "__contains__", lambda self, message_id: False
    ),
    "budget-of-an-epoch-is-kept": _flags(
        without=(
            "--rate-limit-enabled",
            "--rate-limit-messages-per-epoch",
            "--rate-limit-epoch-period-s",
        )
    ),
    "waits-for-its-dependency": _patched(ReferenceSearch, "note", lambda self, *_, **__: set()),
    "waits-for-what-waits-itself": _patched(ReferenceSearch, "note", lambda self, *_, **__: set()),
    "ties-are-ordered-by-id": _lines(_backwards),
    "duplicates-are-delivered-once": _lines(_twice),
    "causal-history-acknowledges": _no_acknowledgements,
    "sync-messages-acknowledge": _no_acknowledgements,
    "filter-acknowledges-possibly": _no_acknowledgements,
    "one-participant-counts-once": _flags("--possible-acks-threshold", "1"),
    "full-filters-acknowledge-nothing": _patched(
        acknowledgements, "_require_evidence", lambda layout, words: None
    ),
    "survives-what-is-no-message": _dies_of_noise,
    "ignores-other-channels-and-its-own-name": _decoded(
        lambda found: replace(found, channel_id="conformance")
    ),
    "odd-filters-do-not-stop-delivery": _decoded(_needs_whole_filters),
    "cycles-do-not-block": _decoded(_dies_of_cycles),
    "ephemeral-messages-are-delivered": _lines(
        lambda line: [] if line["event"] == "ephemeral_received" else [line]
    ),
    "missing-messages-are-requested": _flags("--retrieval-strategy", "store-only"),
    "lost-requests-are-repeated": _flags("--repair-max-request-attempts", "1"),
    "requests-are-answered": _patched(
        buffers.IncomingRepairBuffer, "request", lambda self, *_: False
    ),
    "giving-up-loses-nothing-else": _lines(_swallows_after_loss()),
    "latecomer-gets-what-was-before": _flags("--history", "none", "--retrieval-strategy", "none"),
    "restart-goes-on": _flags(without=("--state",)),
    "long-payloads-arrive-whole": _lossy_segments,
    "equal-logs-with-ours": _lines(_backwards),
    "equal-logs-with-itself": _lines(_renamed_order),
}
"""What breaks each row, by its name."""

if __name__ == "__main__":
    defect = sys.argv.pop(1)
    DEFECTS[defect]()
    run()
