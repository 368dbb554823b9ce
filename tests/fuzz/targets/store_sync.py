"""Store synchronisation: what a joined node asks, and what it answers."""

import json
from collections.abc import Iterator
from typing import Final

from waku.models import WakuMessage
from waku.node import EmbeddedNode, NodeOptions
from waku.node.envelope import Envelope
from waku.node.reconciliation import MAX_DIFFERENCES, Reconciliation, Summary, SyncId, Window
from waku.node.sync_codec import gift_json, ranges_json, replies_json, replies_of

from ..target import JSON_WORDS, Target

NS_PER_S: Final = 1_000_000_000
NOW_NS: Final = 1_800_000_000 * NS_PER_S
SHARD: Final = "/waku/2/rs/1/0"
OPTIONS: Final = NodeOptions(store_sync=True, store_capacity=100, now_ns=lambda: NOW_NS)
ALL: Final[tuple[SyncId, SyncId]] = ((NOW_NS - 3600 * NS_PER_S, b""), (NOW_NS, b""))
OURS: Final = 70
"""More than are listed, so that a range is split."""


def _synchronise(data: bytes) -> None:
    """Any request is answered or a ValueError, and any answer taken or one."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(fields, dict):
        return
    node = EmbeddedNode(OPTIONS)
    assert node.archive is not None and node.store_sync is not None
    try:
        for number in range(OURS):
            node.archive_only(_envelope(number))
        try:
            json.dumps(node.store_sync.answer(fields))
        except ValueError:
            pass
        assert len(node.archive) <= OPTIONS.store_capacity
    finally:
        node.archive.close()
    _compare(fields)


def _compare(fields: dict[str, object]) -> None:
    comparison = Reconciliation(_window(), *ALL)
    while asked := comparison.next_request():
        json.dumps(ranges_json(asked))
        try:
            comparison.take(asked, replies_of(fields)[0])
        except ValueError:
            break
    assert max(len(comparison.missing), len(comparison.surplus)) <= MAX_DIFFERENCES


def _envelope(number: int) -> Envelope:
    stamp_ns = NOW_NS - (60 + number) * NS_PER_S
    return Envelope.of(SHARD, WakuMessage(b"ours", "/app/1/chat/proto", timestamp=stamp_ns))


def _window() -> Window:
    ids = ((one.message.timestamp, one.hash) for one in map(_envelope, range(OURS)))
    return Window(sorted(ids), ALL[0][0])


def _seeds() -> Iterator[bytes]:
    window, unknown = _window(), Summary(*ALL, 0, 0)
    some = window.summary(ALL[0], (NOW_NS - 100 * NS_PER_S, b""))
    for request in (
        ranges_json([unknown]),
        ranges_json([window.summary(*ALL), some]),
        gift_json([_envelope(OURS)]),
        replies_json([window.reply(unknown)], ALL[0][0]),
        replies_json([Window(window.ids(*ALL)[:3], 0).reply(unknown)], ALL[0][0]),
    ):
        yield json.dumps(request).encode()


TARGETS: Final = (Target("store_sync", _synchronise, _seeds, JSON_WORDS),)
