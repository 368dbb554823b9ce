"""Checks of Waku nodes, first each node alone and then all nodes together."""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import anyio

from waku import WakuClient
from waku._request import Flavour
from waku.errors import (
    BadAnswer,
    EndpointMissing,
    NodeUnreachable,
    NoPeers,
    WakuError,
)
from waku.models import StorePage, StoreQuery
from waku.topics import PubsubTopic

from ...transport.addresses import masked_address as shown
from ...transport.base import Envelope, TransportError
from ...transport.node import NodeTransport
from ...transport.settings import WakuSettings
from ...transport.waku import WakuTransport
from .findings import Findings
from .sending import (
    CLOCK_S,
    COMPARED,
    examine_sending,
    explain_missing,
    has,
    is_stored,
    probe,
    wrong_cluster,
)

PROTOCOLS: Final = ("Relay", "Rln Relay", "Lightpush", "Filter", "Store")
"""Protocols that a channel uses. Nodes also report further protocols, such as clients without a
configured address."""
API_NAMES: Final = {
    "relay": "relay",
    "filter": "filter and light push",
    "messaging": "messaging layer",
}
NEEDS: Final = (
    "the node needs relay, or filter and light push with a service node, or a messaging layer; and "
    "the cluster and shards of the channel"
)
SETTLED_S: Final = 30.0
"""Age of a message (s) from which every Store should have it."""
HOUR_NS: Final = 3_600_000_000_000


async def examine_nodes(
    findings: Findings, urls: Sequence[str], settings: WakuSettings, *, publish: bool, wait_s: float
) -> None:
    """Check nodes by their REST API and, with `publish`, by a message on the topic.

    A node that is used by its messaging layer gets the message through that layer.
    """
    answering = [url for url in urls if await examine_node(findings, url, settings)]
    by_rest = []
    for url in answering:
        api = await _examine_api(findings, url, settings, publish=publish, wait_s=wait_s)
        if api in ("relay", "filter"):
            by_rest.append(url)
    if publish:
        for url in by_rest:
            await _round_trip(findings, url, by_rest, settings, wait_s)
    if len(answering) > 1:
        await _compare_stores(findings, answering, settings)


async def _examine_api(
    findings: Findings, url: str, settings: WakuSettings, *, publish: bool, wait_s: float
) -> str:
    """Subscribe as a channel does; return the API through which that works, if any.

    Through a messaging layer, which returns no own messages, a message is sent, too.
    """
    transport = NodeTransport(url, settings)
    try:
        await transport.open()
        api = transport.api
        findings.add("ok", "node.api", shown(url), f"a channel uses its {API_NAMES[api]}")
        if publish and api == "messaging":
            await examine_sending(findings, transport, url, settings, wait_s)
    except TransportError as error:
        findings.add("problem", "node.api", shown(url), f"a channel cannot use it: {error}", NEEDS)
        return ""
    finally:
        await transport.aclose()
    return api


async def examine_node(findings: Findings, url: str, settings: WakuSettings) -> bool:
    """Check one node, and return True if it works as a Waku node and can be subscribed to
    safely."""
    async with WakuClient(url, retries=None) as client:
        began_s = time.perf_counter()
        try:
            await client.info()
            took_ms = 1000 * (time.perf_counter() - began_s)
            version = await client.version()
        except WakuError as error:
            text, advice = _unusable(error)
            findings.add("problem", "node.reachable", shown(url), text, advice)
            return False
        findings.add("ok", "node.reachable", shown(url), f"version {version}, {took_ms:.0f} ms")
        await _examine_health(findings, url, client)
        await _examine_peers(findings, url, client)
        can_be_tried = await _examine_cluster(findings, url, client, settings)
        await examine_store(findings, shown(url), client.store, settings)
    return can_be_tried


def _unusable(error: WakuError) -> tuple[str, str]:
    """Why a node cannot be used, and what to do."""
    detail = error.detail or str(error)
    if error.status == 401:
        return "the node demands a token", "write http://:TOKEN@host:port"
    if error.status == 403:
        return (
            f"the node refuses this address: {detail}",
            "start it with --allow-host NAME, or call it by its IP address",
        )
    if isinstance(error, NodeUnreachable):
        lowered = detail.lower()
        if "name" in lowered and ("resolution" in lowered or "known" in lowered):
            return f"the name is unknown: {detail}", "check the spelling and the DNS"
        if "answer" in lowered or "timeout" in lowered:
            return f"it does not answer: {detail}", "restart the node, and look into its log"
        return (
            f"nothing listens there: {detail}",
            "start a node (`reliable-channel node`, or nwaku with --rest=true), check the port",
        )
    if isinstance(error, BadAnswer) or error.status in (404, 405):
        return (
            f"something answers that is not a Waku node's REST API: {detail}",
            "check the port: REST is 8645 by default; nwaku needs --rest=true",
        )
    return f"it does not work: {detail}", "look into the node's log"


async def _examine_health(findings: Findings, url: str, client: WakuClient) -> None:
    try:
        health = await client.health()
    except EndpointMissing:
        return
    except WakuError as error:
        findings.add("warning", "node.health", shown(url), str(error), "look into its log")
        return
    works = [one.protocol for one in health.protocols if one.status.upper() == "READY"]
    findings.add(
        "ok",
        "node.protocols",
        shown(url),
        f"ready: {', '.join(one for one in works if one in PROTOCOLS) or 'none'}",
    )
    for one in health.protocols:
        if one.status.upper() in ("READY", "NOT_MOUNTED") or one.protocol not in PROTOCOLS:
            continue
        findings.add(
            "warning",
            "node.health",
            shown(url),
            f"{one.protocol} is {one.status}{f': {one.desc}' if one.desc else ''}",
            "give it time, peers or disk space, as its log says",
        )


async def _examine_peers(findings: Findings, url: str, client: WakuClient) -> None:
    try:
        peers = await client.connected_peers()
    except WakuError:
        findings.add(
            "note",
            "node.peers",
            shown(url),
            "it does not report its peers",
            "nwaku does with --rest-admin=true",
        )
        return
    if peers:
        findings.add("ok", "node.peers", shown(url), f"{len(peers)} connected")
    else:
        findings.add(
            "warning",
            "node.peers",
            shown(url),
            "no peer is connected: its messages reach no other node",
            "fine for one node by itself; else join it to others (--relay-peer, --staticnode)",
        )


async def _examine_cluster(
    findings: Findings, url: str, client: WakuClient, settings: WakuSettings
) -> bool:
    """Compare the node's cluster and shards with the channel's, as far as its record names them.

    Returns:
        False if a subscription would make the node follow a further shard until it is restarted.
    """
    try:
        from waku.discovery.enr import NodeRecord

        record = NodeRecord.parse((await client.info()).enr_uri)
    except (ImportError, ValueError, WakuError):
        return True
    ours = PubsubTopic.parse(settings.shard)
    if record.cluster_id is None:
        return True
    if record.cluster_id != ours.cluster_id:
        wrong_cluster(findings, shown(url), record.cluster_id, ours.cluster_id)
    elif record.shards and ours.shard not in record.shards:
        forgets = await client.flavour() is Flavour.EMBEDDED
        text = f"it follows shards {sorted(record.shards)}, and the channel uses shard {ours.shard}"
        advice = "start it with that --shard, or choose another content topic"
        findings.add("warning" if forgets else "problem", "node.shard", shown(url), text, advice)
        return forgets
    return True


async def examine_store(
    findings: Findings,
    where: str,
    store: Callable[[StoreQuery], Awaitable[StorePage]],
    settings: WakuSettings,
) -> None:
    """Query Store for the newest messages, and compare their timestamps with the clock."""
    query = StoreQuery(
        content_topics=(settings.content_topic,),
        pubsub_topic=settings.shard,
        page_size=COMPARED,
        ascending=False,
    )
    try:
        page = await store(query)
    except (EndpointMissing, NoPeers):
        findings.add(
            "warning",
            "node.store",
            where,
            "it has no Store, and finds none",
            "messages that were missed come from peers only; add a node with Store",
        )
        return
    except WakuError as error:
        findings.add("warning", "node.store", where, f"Store does not work: {error}")
        return
    stamps = [one.message.timestamp for one in page.entries if one.message is not None]
    ahead_s = (max((stamp or 0 for stamp in stamps), default=0) - time.time_ns()) / 1e9
    if ahead_s > CLOCK_S:
        findings.add(
            "warning",
            "clock",
            "this machine",
            f"Store has a message stamped {ahead_s:.0f} s in the future",
            "set this machine's clock (NTP), or that of the participant that sent it",
        )
    findings.add("ok", "node.store", where, f"answers; {len(stamps)} messages on a page")


async def _round_trip(
    findings: Findings,
    url: str,
    urls: Sequence[str],
    settings: WakuSettings,
    wait_s: float,
) -> None:
    """Publish a message through one node, and look for it at all of them and in its Store."""
    sender, readers = WakuTransport(url, settings), [WakuTransport(one, settings) for one in urls]
    opened: list[WakuTransport] = []
    try:
        for transport in (sender, *readers):
            await transport.open()
            opened.append(transport)
        envelope = probe(sender)
        began_s = time.perf_counter()
        await sender.publish(envelope)
        took_ms = 1000 * (time.perf_counter() - began_s)
        findings.add("ok", "publish", shown(url), f"a node took a message in {took_ms:.0f} ms")
        for reader in readers:
            await _arrives(findings, url, reader, envelope, began_s, wait_s)
        if not await is_stored(findings, partial(has, sender, envelope), sender.url, wait_s):
            await explain_missing(findings, url, settings, envelope.payload, wait_s)
    except TransportError as error:
        findings.add(
            "problem",
            "publish",
            (opened or [sender])[-1].url,
            f"cannot be used to send and receive: {error}",
            NEEDS,
        )
    finally:
        for transport in (sender, *readers):
            await transport.aclose()


async def _arrives(
    findings: Findings,
    url: str,
    reader: WakuTransport,
    envelope: Envelope,
    began_s: float,
    wait_s: float,
) -> None:
    with anyio.move_on_after(wait_s):
        while True:
            batch = await reader.receive()
            if any(one.payload == envelope.payload for one in batch.messages):
                took_ms = 1000 * (time.perf_counter() - began_s)
                where = f"{shown(url)} → {reader.url}"
                findings.add("ok", "round_trip", where, f"{took_ms:.0f} ms")
                return
    same = reader.url == shown(url)
    findings.add(
        "problem",
        "round_trip",
        f"{shown(url)} → {reader.url}",
        f"the message did not arrive within {wait_s:g} s",
        "the node does not serve its own clients: it needs relay or a filter service node"
        if same
        else "the nodes are not connected, or follow different clusters or shards: join them",
    )


async def _compare_stores(findings: Findings, urls: Sequence[str], settings: WakuSettings) -> None:
    """Compare what the Stores of several nodes have of the last hour."""
    until_ns = time.time_ns() - int(SETTLED_S * 1e9)
    query = StoreQuery(
        content_topics=(settings.content_topic,),
        pubsub_topic=settings.shard,
        start_time_ns=until_ns - HOUR_NS,
        end_time_ns=until_ns,
        include_data=False,
        ascending=False,
        page_size=COMPARED,
    )
    have: dict[str, set[bytes]] = {}
    for url in urls:
        async with WakuClient(url, retries=None) as client:
            try:
                have[url] = {entry.message_hash for entry in (await client.store(query)).entries}
            except WakuError:
                continue  # reported as node.store
    everything = set().union(*have.values())
    for url, hashes in have.items():
        if lacking := len(everything - hashes):
            findings.add(
                "warning",
                "store.agrees",
                shown(url),
                f"its Store lacks {lacking} of {len(everything)} messages that others have",
                "it was away, or is not connected to them; channels ask the other Stores too",
            )
    if len(have) > 1 and all(hashes == everything for hashes in have.values()):
        text = f"{len(have)} Stores agree on {len(everything)} messages of the last hour"
        findings.add("ok", "store.agrees", "all nodes", text)
