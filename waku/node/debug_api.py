"""REST operations `/info`, `/version` and `/health`."""

from __future__ import annotations

from typing import Final

from waku.node.http import Request, Response, Route, ServedNode

__all__ = ["ROUTES"]

_READY: Final = ("READY", None)
_NOT_MOUNTED: Final = ("NOT_MOUNTED", None)

Status = tuple[str, str | None]


async def info(node: ServedNode, request: Request) -> Response:
    """Answer GET /info with the addresses and the record of the node. A node that does not listen
    for libp2p peers has neither addresses nor a record."""
    return Response.json({"listenAddresses": list(node.libp2p_addresses), "enrUri": node.record})


async def version(node: ServedNode, request: Request) -> Response:
    return Response.text(200, node.agent)


async def health(node: ServedNode, request: Request) -> Response:
    """Answer GET /health with the status of the node. If the last write to the store failed, the
    node tries another write first."""
    archive = node.archive
    if archive is not None and archive.problem is not None:
        archive.check()
    protocols = [
        {name: status} if description is None else {name: status, "desc": description}
        for name, (status, description) in protocols_health(node).items()
    ]
    ready = archive is None or archive.problem is None  # else nothing can be published
    state = "READY" if ready else "NOT_READY"
    return Response.json({"nodeHealth": state, "protocolsHealth": protocols})


def protocols_health(node: ServedNode) -> dict[str, Status]:
    """Return the status and the problem of each protocol, in nwaku's words."""
    options = node.options
    relay = _relay_health(node)
    lightpush: Status = _NOT_MOUNTED
    if options.lightpush:
        # The spelling is nwaku's.
        no_relay = ("NOT_READY", "Node has no relay peers to fullfill push requests")
        lightpush = _READY if relay == _READY else no_relay
    filter_: Status = _NOT_MOUNTED
    if options.filter:
        no_relay = ("NOT_READY", "Relay is not ready, filter will not be able to sort out messages")
        filter_ = _READY if relay == _READY else no_relay
    lightpush_client = lightpush == _READY or node.service_nodes.find("lightpush") is not None
    lightpush_client_health = _client_health(
        lightpush_client, "No Lightpush service peer available yet"
    )
    return {
        "Relay": relay,
        "Rln Relay": _NOT_MOUNTED,
        "Lightpush": lightpush,
        "Legacy Lightpush": lightpush,
        "Filter": filter_,
        "Store": _store_health(node),
        "Legacy Store": _NOT_MOUNTED,
        "Peer Exchange": _NOT_MOUNTED,
        "Rendezvous": _NOT_MOUNTED,
        "Mix": _NOT_MOUNTED,
        "Lightpush Client": lightpush_client_health,
        "Legacy Lightpush Client": lightpush_client_health,
        "Store Client": _client_health(
            options.store or node.service_nodes.find("store") is not None,
            _no_store_peers("Store"),
        ),
        "Legacy Store Client": _client_health(False, _no_store_peers("Legacy Store")),
        "Filter Client": _client_health(
            node.service_nodes.find("filter") is not None, "No Filter service peer available yet"
        ),
    }


def _relay_health(node: ServedNode) -> Status:
    if not node.options.relay:
        return _NOT_MOUNTED
    if node.options.self_service or node.relay_peers():
        return _READY
    return "NOT_READY", "No connected peers"


def _store_health(node: ServedNode) -> Status:
    if node.archive is None:
        return _NOT_MOUNTED
    return _READY if node.archive.problem is None else ("NOT_READY", node.archive.problem)


def _no_store_peers(name: str) -> str:
    whose = f"No {name} service peers are available yet"
    return f"{whose}, neither Store service set up for the node"


def _client_health(ready: bool, otherwise: str) -> Status:
    return _READY if ready else ("NOT_READY", otherwise)


ROUTES: Final = (
    *(
        Route("GET", path, info, "Return the addresses of the node", "node", answer="Info")
        for path in ("/info", "/debug/v1/info")
    ),
    *(
        Route("GET", path, version, "Return the version", "node")
        for path in ("/version", "/debug/v1/version")
    ),
    Route("GET", "/health", health, "Return the health of the node", "node", answer="Health"),
)
