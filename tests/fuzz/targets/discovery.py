"""Discovery: node records, answers of the DNS, trees whose texts are anything, networks' files."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Final

import dns.message
import dns.rrset

from waku.discovery import NodeRecord, TreeUrl, TreeWalk
from waku.discovery.dns_tree import MAX_LOOKUPS, MAX_PROBLEMS
from waku.discovery.networks import MAX_CLUSTER, check_entry, network_in
from waku.discovery.resolver import LookupFailed, texts_in
from waku.libp2p import InvalidInput

from .. import vectors
from ..target import Target, joined, records


def node_records() -> Iterator[bytes]:
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


def dns_answers() -> Iterator[bytes]:
    """What a resolver writes: texts, texts under another name, and none."""
    name, other = "nodes.example.", "other.example."
    texts = dns.rrset.from_text(name, 60, "IN", "TXT", '"enrtree-root:v1" "e=A l=B"', '"x"')
    alias = dns.rrset.from_text(name, 60, "IN", "CNAME", other)
    behind = dns.rrset.from_text(other, 60, "IN", "TXT", '"x"')
    for answer in ([texts], [alias, behind], [alias], []):
        message = dns.message.make_response(dns.message.make_query(name, "TXT", id=0))
        message.answer = answer
        yield message.to_wire()


def _dns_answer(data: bytes) -> None:
    """An answer has texts, or the question failed."""
    try:
        assert all(text.isascii() or "\ufffd" in text for text in texts_in(data))
    except LookupFailed as error:
        assert str(error)


def network_files() -> Iterator[bytes]:
    """The networks that are known, each as the file of it."""
    tables = files("waku.discovery").joinpath("networks.toml").read_bytes().split(b"\n[")
    for table in tables[1:]:
        yield table.partition(b"\n")[2]


def _network_file(data: bytes) -> None:
    """A file describes a network that can be entered, or is refused in one way."""
    try:
        network = network_in("own", data)
    except ValueError as error:
        assert str(error)
        return
    assert 0 <= network.cluster_id <= MAX_CLUSTER
    assert network.all_shards
    for text in network.entry:
        check_entry(text)


TARGETS: Final = (
    Target("node_record", _record, node_records),
    Target("dns_tree", _tree, trees),
    Target("dns_answer", _dns_answer, dns_answers),
    Target(
        "network_file",
        _network_file,
        network_files,
        (b"num_shards = 8\n", b"shards = [1]\n", b"rln = true\n", b"[" * 600),
    ),
)
