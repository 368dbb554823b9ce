"""Checks of a node's messaging layer (`waku+messaging://`)."""

from collections.abc import Sequence
from typing import Final

from waku.topics import PubsubTopic

from ...transport.addresses import masked_address as shown
from ...transport.base import TransportError
from ...transport.connect import messaging_transport
from ...transport.settings import WakuSettings
from .findings import Findings
from .nodes import examine_node
from .sending import examine_sending

SCHEME: Final = "waku+messaging"


async def examine_messaging(
    findings: Findings, urls: Sequence[str], settings: WakuSettings, *, publish: bool, wait_s: float
) -> None:
    """Check nodes by their REST API, then subscribe and send through their messaging layer."""
    for url in urls:
        # It is the same server as that of the REST API.
        rest = "http" + url.removeprefix(SCHEME).replace("+https://", "s://")
        if not await examine_node(findings, rest, settings):
            continue
        transport = messaging_transport(url, settings)
        try:
            await transport.open()
            text = f"the messaging layer subscribes; the channel is on {settings.shard}"
            findings.add("ok", "messaging", shown(url), text)
            _examine_shard(findings, shown(url), settings)
            if publish:
                await examine_sending(findings, transport, rest, settings, wait_s)
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


def _examine_shard(findings: Findings, where: str, settings: WakuSettings) -> None:
    """Warn of a shard without listeners: a node of Status' network shards over one shard."""
    try:
        from waku.discovery import find_network
    except ImportError:
        return
    status, ours = find_network("status.prod"), PubsubTopic.parse(settings.shard)
    if ours.cluster_id == status.cluster_id and ours.shard not in status.shards:
        listed = ", ".join(map(str, status.shards))
        text = f"the node sends on {ours}, and clients of Status listen on shards {listed}"
        advice = "use its REST API (http://…) or service peers, with --network status.prod"
        findings.add("warning", "node.shard", where, text, advice)
