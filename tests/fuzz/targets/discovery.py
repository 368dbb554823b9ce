"""Discovery: node records, and trees in the DNS whose texts are anything."""

from collections.abc import Iterator
from typing import Final

from waku.discovery import NodeRecord, TreeUrl, TreeWalk
from waku.discovery.dns_tree import MAX_LOOKUPS, MAX_PROBLEMS
from waku.libp2p import InvalidInput

from .. import vectors
from ..target import Target, joined, records


def node_records() -> Iterator[bytes]:
    """What go-waku writes."""
    for case in vectors.document("libp2p/enrs.json"):
        yield case["input"].encode()


def _record(data: bytes) -> None:
    """A record is what its bytes say, or it is refused."""
    try:
        record = NodeRecord.parse(data.decode("utf-8", "replace"))
    except InvalidInput:
        pass
    else:
        assert NodeRecord.parse(record.text) == record
    try:
        NodeRecord.decode(data)
    except InvalidInput:
        pass
    try:
        url = TreeUrl.parse(data.decode("utf-8", "replace"))
        assert TreeUrl.parse(str(url)) == url
    except InvalidInput:
        pass


def trees() -> Iterator[bytes]:
    """A tree of go-ethereum's, in the order in which it is asked for."""
    given = vectors.document("libp2p/enrtree.json")[0]["input"]
    walk, texts = TreeWalk(given["url"]), [given["url"]]
    while (name := walk.next_name()) is not None:
        texts.append(given["zone"][name])
        walk.receive(name, [texts[-1]])
    yield joined(text.encode() for text in texts)
    yield given["url"].encode()


def _tree(data: bytes) -> None:
    """Whatever the resolver answers, a walk ends, and its nodes are the owner's."""
    texts = [record.decode("utf-8", "replace") for record in records(data)]
    try:
        walk = TreeWalk(texts[0] if texts else "")
    except InvalidInput:
        return
    answers, asked = iter(texts[1:]), 0
    while (name := walk.next_name()) is not None:
        asked += 1
        walk.receive(name, [text for text in (next(answers, None),) if text is not None])
    assert asked <= MAX_LOOKUPS
    assert len(walk.problems) <= MAX_PROBLEMS
    assert all(record.text in texts for record in walk.records)


TARGETS: Final = (
    Target("node_record", _record, node_records),
    Target("dns_tree", _tree, trees),
)
