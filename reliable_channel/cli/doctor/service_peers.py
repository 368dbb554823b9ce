"""Checks of service peers over libp2p, in light push, filter and Store."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from waku.errors import WakuError, WrongNetwork
from waku.hashing import message_hash
from waku.models import StoreQuery, WakuMessage
from waku.p2p import LightClient, Pushed
from waku.p2p.protocols import ROLE_PROTOCOLS, Role
from waku.topics import PubsubTopic

from ..._contracts.finding import Level
from ...transport.addresses import LIBP2P
from ...transport.base import StoreUnavailable
from ...transport.settings import WakuSettings, trusting
from ...transport.waku_topic import translated
from .findings import Findings
from .nodes import examine_store
from .sending import PROBE, is_stored, not_archived

LACKING: Final[dict[Role, tuple[Level, str, str]]] = {
    Role.LIGHT_PUSH: ("problem", "node.lightpush", "nothing can be sent: add one that does"),
    Role.FILTER: ("problem", "node.filter", "nothing arrives: add one that does"),
    Role.STORE: (
        "warning",
        "node.store",
        "messages that were missed come from participants only: add one that does",
    ),
}


async def examine_service_peers(
    findings: Findings, urls: Sequence[str], settings: WakuSettings, *, publish: bool, wait_s: float
) -> None:
    """Check service peers one by one, with `publish` by a message on the topic.

    At the end of each check, its subscription is ended too.
    """
    addresses = [one for url in urls for one in url.removeprefix(LIBP2P).split(",")]
    offered: set[Role] = set()
    for address in addresses:
        offered |= await _examine_peer(findings, address, settings, publish, wait_s)
    if not offered:
        return  # no peer can be used, as the findings say
    for role, (level, check, advice) in LACKING.items():
        if role not in offered:
            findings.add(level, check, ", ".join(addresses), f"no peer offers {role.value}", advice)


async def _examine_peer(
    findings: Findings, address: str, settings: WakuSettings, publish: bool, wait_s: float
) -> set[Role]:
    """Examine one peer, and return what it offers: nothing if it cannot be used."""
    ours = PubsubTopic.parse(settings.shard)
    async with LightClient(
        address,
        network=settings.network,
        cluster_id=ours.cluster_id,
        shards=[ours.shard],
        ssl_context=trusting(settings.ca_file),
    ) as client:
        try:
            peer = await client.connect()
            took_ms = 1000 * await peer.ping()
        except WrongNetwork as error:
            is_cluster = "in cluster" in error.detail
            check = "node.cluster" if is_cluster else "node.shard"
            advice = (
                "give the -o cluster_id, or the --network, that fits"
                if is_cluster
                else "start it with that --shard, or choose another content topic"
            )
            findings.add("problem", check, address, error.detail, advice)
            return set()
        except WakuError as error:
            advice = "check the address, its port and peer id, and that the node runs"
            findings.add("problem", "node.reachable", address, error.detail, advice)
            return set()
        findings.add("ok", "node.reachable", address, f"{peer.info.agent}, {took_ms:.0f} ms")
        offered = {r for r, by in ROLE_PROTOCOLS.items() if by & peer.info.protocols}
        text = f"offers {', '.join(role.value for role in Role if role in offered)}"
        findings.add("ok", "node.protocols", address, text)
        await _examine_services(findings, address, client, settings, offered, publish, wait_s)
    return offered


async def _examine_services(
    findings: Findings,
    address: str,
    client: LightClient,
    settings: WakuSettings,
    offered: set[Role],
    publish: bool,
    wait_s: float,
) -> None:
    """Use what a peer offers: a message that is pushed comes back by filter, and is in Store."""
    now_ns = time.time_ns()
    message = WakuMessage(PROBE + str(now_ns).encode(), settings.content_topic, timestamp=now_ns)
    async with AsyncExitStack() as stack:
        pushed = None
        if Role.FILTER in offered:
            topics = [settings.content_topic]
            try:
                subscribed = client.subscribe(settings.shard, topics)
                pushed = await stack.enter_async_context(subscribed)
            except WakuError as error:
                findings.add("problem", "node.filter", address, error.detail, error.advice)
            else:
                findings.add("ok", "node.filter", address, "takes subscriptions")
        if Role.STORE in offered:
            await examine_store(findings, address, client.store, settings)
        if not publish or Role.LIGHT_PUSH not in offered:
            return
        began_s = time.perf_counter()
        try:
            await client.light_push(message, settings.shard)
        except WakuError as error:
            findings.add("problem", "publish", address, error.detail or str(error), error.advice)
            return
        took_ms = 1000 * (time.perf_counter() - began_s)
        findings.add("ok", "publish", address, f"it took a message in {took_ms:.0f} ms")
        if pushed is not None:
            await _comes_back(findings, address, pushed, message, wait_s)
        if Role.STORE in offered:
            found = partial(_has, client, settings, message)
            if not await is_stored(findings, found, address, wait_s):
                not_archived(findings, address, wait_s)


async def _comes_back(
    findings: Findings,
    address: str,
    pushed: MemoryObjectReceiveStream[Pushed],
    message: WakuMessage,
    wait_s: float,
) -> None:
    """Wait for an own message: a filter returns it."""
    began_s = time.perf_counter()
    with anyio.move_on_after(wait_s):
        async for one in pushed:
            if one.message.payload == message.payload:
                took_ms = 1000 * (time.perf_counter() - began_s)
                findings.add("ok", "round_trip", address, f"{took_ms:.0f} ms")
                return
    text = f"the message did not arrive within {wait_s:g} s"
    advice = "its filter hears nothing of the shard: restart the node, or give another one"
    findings.add("problem", "round_trip", address, text, advice)


async def _has(client: LightClient, settings: WakuSettings, message: WakuMessage) -> bool:
    """Return True if Store has a message, asked by its time: a Store may refuse hashes.

    Raises:
        StoreUnavailable: it does not answer.
    """
    query = StoreQuery(
        content_topics=(message.content_topic,),
        pubsub_topic=settings.shard,
        start_time_ns=message.timestamp,
        end_time_ns=message.timestamp,
    )
    with translated(StoreUnavailable):
        page = await client.store(query)
    digest = message_hash(settings.shard, message)
    return any(entry.message_hash == digest for entry in page.entries)
