"""Golden vectors of the Waku layer: message hashes and autosharding, as the nodes have them.

Each check yields (case name, None or a one-line difference) and never raises: a case that cannot
be read is a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from waku.hashing import message_hash
from waku.models import WakuMessage
from waku.topics import InvalidTopic, pubsub_topic_for, shard_for

Case = dict[str, Any]
Verdict = tuple[str, str | None]


def check_waku_message_hash(document: Any) -> Iterator[Verdict]:
    """Compare with go-waku; js-waku's `hash_hex` leaves an absent timestamp out on purpose."""

    def compare(case: Case) -> str | None:
        message = WakuMessage(
            payload=bytes.fromhex(case["payload_hex"] or ""),
            content_topic=case["content_topic"],
            meta=bytes.fromhex(case["meta_hex"] or ""),
            timestamp=int(case["timestamp"] or 0),
        )
        return _difference(
            message_hash(case["pubsub_topic"], message).hex(), case["go_waku_hash_hex"]
        )

    yield from _each("message_hash", document, compare, name="note")


def check_autosharding(document: Any) -> Iterator[Verdict]:
    """Compare shard and pubsub topic, or that the topic is refused."""

    def compare(case: Case) -> str | None:
        topic, num_shards = case["content_topic"], case["num_shards"]
        try:
            ours: object = (
                shard_for(topic, num_shards),
                pubsub_topic_for(topic, cluster_id=case["cluster_id"], num_shards=num_shards),
            )
        except InvalidTopic:
            ours = "refused"
        refused = case["error"] is not None
        return _difference(ours, "refused" if refused else (case["shard"], case["pubsub_topic"]))

    yield from _each("autosharding", document, compare, name="content_topic")


def check_waku_vectors(document: Any) -> Iterator[Verdict]:
    """Compare the hashes and shards that a real nwaku gave."""

    def compare_hash(case: Case) -> str | None:
        message = WakuMessage.from_json(case["message"])
        ours = "0x" + message_hash(case["pubsub_topic"], message).hex()
        return _difference(ours, case["message_hash"])

    def compare_shard(case: Case) -> str | None:
        ours = pubsub_topic_for(case["content_topic"], cluster_id=67, num_shards=8)
        return _difference(ours, case["pubsub_topic"])

    sections: tuple[tuple[str, Callable[[Case], str | None]], ...] = (
        ("message_hashes", compare_hash),
        ("autosharding_8_shards_cluster_67", compare_shard),
    )
    for section, compare in sections:
        try:
            cases = document[section]
        except (KeyError, TypeError, IndexError) as error:
            yield section, f"unreadable: {error!r}"
        else:
            yield from _each(section, cases, compare, name="content_topic")


def _each(
    prefix: str, cases: Any, compare: Callable[[Case], str | None], *, name: str
) -> Iterator[Verdict]:
    if not isinstance(cases, list) or not cases:
        yield prefix, "unreadable: not a list of cases"
        return
    for index, case in enumerate(cases):
        label = f"{prefix}[{index}]"
        try:
            label += f" {case.get(name) or ''}".rstrip()
            difference = compare(case)
        except Exception as error:  # whatever is wrong with a case is its difference
            difference = f"unreadable: {error!r}"
        yield label, difference


def _difference(ours: object, theirs: object) -> str | None:
    return None if ours == theirs else f"ours {ours!r}, theirs {theirs!r}"
