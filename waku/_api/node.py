"""The node itself: its identity and health (debug v1, health)."""

from __future__ import annotations

from collections.abc import Mapping

from waku import _json
from waku._api.base import Api
from waku._request import Answer, Repeat, Request
from waku.models import Health, NodeInfo, ProtocolHealth

__all__ = ["NodeApi"]

VERSION_LIMIT = 200
"""Maximum length of a version. A page of another server is longer."""


class NodeApi(Api):
    """The calls that every node answers."""

    async def info(self) -> NodeInfo:
        """Return the node's addresses. Use it as a sign of life of nwaku and go-waku."""
        request = Request("info", "GET", "/debug/v1/info", Repeat.SAFE)
        return await self._session.call(request, _info)

    async def version(self) -> str:
        """Return the node's version (`-` for go-waku built without one)."""
        request = Request("version", "GET", "/debug/v1/version", Repeat.SAFE)
        return await self._session.call(request, _version)

    async def health(self) -> Health:
        """Return the health of the node and of each protocol (nwaku).

        Raises:
            EndpointMissing: go-waku has none. Use `info`.
        """
        request = Request("health", "GET", "/health", Repeat.SAFE)
        return await self._session.call(request, _health)


def _info(answer: Answer) -> NodeInfo:
    fields = _json.object_of(answer.json())
    return NodeInfo(
        listen_addresses=_json.list_of(
            _json.field(fields, "listenAddresses", "listen_addresses"), _json.text
        ),
        enr_uri=_json.optional_text(_json.field(fields, "enrUri", "enr_uri")) or "",
    )


def _version(answer: Answer) -> str:
    """Read plain text (nwaku) or a JSON string (go-waku)."""
    text = answer.text.strip()
    if not text or len(text) > VERSION_LIMIT or not text.isprintable() or text[0] in "<{[":
        raise ValueError("expected a version of the node")
    return _json.text(answer.json()) if text.startswith('"') else text


def _health(answer: Answer) -> Health:
    fields = _json.object_of(answer.json())
    return Health(
        node_health=_json.text(_json.field(fields, "nodeHealth", "node_health")),
        protocols=_json.list_of(
            _json.field(fields, "protocolsHealth", "protocols_health"), _protocol_health
        ),
        connection_status=_json.optional_text(
            _json.field(fields, "connectionStatus", "connection_status")
        ),
    )


def _protocol_health(value: object) -> ProtocolHealth:
    """Read `{"Relay": "READY", "desc"?: text}`: the key that is not `desc` is the name."""
    fields: Mapping[str, object] = _json.object_of(value)
    names = [key for key in fields if key != "desc"]
    if len(names) != 1:
        raise ValueError(f"expected one protocol in each entry, found {len(names)}")
    return ProtocolHealth(
        protocol=names[0],
        status=_json.text(fields[names[0]]),
        desc=_json.optional_text(fields.get("desc")) or "",
    )
