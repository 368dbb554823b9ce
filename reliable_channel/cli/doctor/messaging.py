"""What can be wrong with a node's messaging layer, `waku+messaging://`."""

import time
from collections.abc import Sequence
from typing import Final

import anyio

from ...transport.base import StoreUnavailable, TransportError
from ...transport.connect import messaging_transport
from ...transport.messaging import MessagingTransport
from ...transport.settings import WakuSettings
from .findings import Findings
from .nodes import PROBE, examine_node, shown

SCHEME: Final = "waku+messaging"
LOOK_S: Final = 0.2


async def examine_messaging(
    findings: Findings, urls: Sequence[str], settings: WakuSettings, *, publish: bool, wait_s: float
) -> None:
    """Examine nodes by their REST API, then subscribe and send through their messaging layer."""
    for url in urls:
        # It is the same server as that of the REST API.
        rest = "http" + url.removeprefix(SCHEME).replace("+https://", "s://")
        if not await examine_node(findings, rest, settings):
            continue
        transport = messaging_transport(url, settings)
        try:
            await _subscribes(findings, transport, url)
            if publish:
                await _sends(findings, transport, url, wait_s)
        except TransportError as error:
            findings.add(
                "problem",
                "messaging",
                shown(url),
                f"its messaging layer cannot be used: {error}",
                "look into the node's log, or use its REST API: http://…",
            )
        finally:
            await transport.aclose()


async def _subscribes(findings: Findings, transport: MessagingTransport, url: str) -> None:
    await transport.open()
    findings.add("ok", "messaging", shown(url), "the messaging layer subscribes")


async def _sends(
    findings: Findings, transport: MessagingTransport, url: str, wait_s: float
) -> None:
    """Send a message, and look for it in Store: a node does not return a client's own messages."""
    now_ns = time.time_ns()
    payload = PROBE + str(now_ns).encode()
    began_s = time.perf_counter()
    sent = await transport.publish(
        transport.envelope(payload, timestamp_ns=now_ns, ephemeral=False)
    )
    took_ms = 1000 * (time.perf_counter() - began_s)
    findings.add("ok", "publish", shown(url), f"the node sent a message in {took_ms:.0f} ms")
    with anyio.move_on_after(wait_s):
        while True:
            try:
                found = await transport.by_hash([sent.message_hash])
            except StoreUnavailable:
                return  # reported as node.store
            if found:
                took_ms = 1000 * (time.perf_counter() - began_s)
                findings.add("ok", "store.archives", shown(url), f"stored after {took_ms:.0f} ms")
                return
            await anyio.sleep(LOOK_S)
    findings.add(
        "problem",
        "store.archives",
        shown(url),
        f"a message that was sent is not in Store after {wait_s:g} s",
        "compare cluster and number of shards: here the node chooses the shard",
    )
