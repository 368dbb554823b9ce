"""What can be wrong with a node's messaging layer, `waku+messaging://`."""

from collections.abc import Sequence
from typing import Final

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
    """Examine nodes by their REST API, then subscribe and send through their messaging layer."""
    for url in urls:
        # It is the same server as that of the REST API.
        rest = "http" + url.removeprefix(SCHEME).replace("+https://", "s://")
        if not await examine_node(findings, rest, settings):
            continue
        transport = messaging_transport(url, settings)
        try:
            await transport.open()
            findings.add("ok", "messaging", shown(url), "the messaging layer subscribes")
            if publish:
                await examine_sending(findings, transport, shown(url), wait_s)
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
