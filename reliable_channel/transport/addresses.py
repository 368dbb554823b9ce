"""Checks of a channel's node addresses, and its default content topic."""

import re
from collections.abc import Sequence
from typing import Final

from waku._userinfo import masked_address as masked_address
from waku._userinfo import masked_text as masked_text

LIBP2P: Final = "libp2p://"
"""Scheme before a list of addresses of service peers, separated by commas."""
_PEERS: Final = ("/", "enrtree://", "enr:")
"""How addresses of service peers begin, where they stand alone."""


def default_content_topic(channel_id: str) -> str:
    """Return the default content topic of a channel, `/reliable-channel/1/<channel id>/proto`."""
    return f"/reliable-channel/1/{re.sub(r'[^A-Za-z0-9._-]', '-', channel_id)}/proto"


def checked_address(url: str) -> str:
    """Return a node address in its normal form, or raise an error.

    Raises:
        ValueError: it is no address.
    """
    if isinstance(url, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s]", url):
        return url
    is_host = isinstance(url, str) and re.fullmatch(r"[\w.-]+(:\d+)?", url)
    url = masked_address(url) if isinstance(url, str) else url
    advice = f"; write 'http://{url}'" if is_host else ""
    raise ValueError(
        "`node` must be an http or https address, a multiaddress of a service peer (/dns4/…), "
        "enrtree://…, or the URL of another network "
        f"(got {url!r}){advice}"
    )


def checked_addresses(node: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the addresses of one or several nodes, each once. If `node` is None, return no
    address.

    Addresses of service peers over libp2p are joined into one, because one client uses them all.

    Raises:
        ValueError: one of them is no address, or the list is empty.
    """
    if node is None:
        return ()
    if isinstance(node, str) or not isinstance(node, Sequence):
        node = (node,)
    if not node:
        raise ValueError("`node` must be at least one address, or None (got an empty list)")
    peers = [url for url in node if isinstance(url, str) and url.startswith(_PEERS)]
    together = LIBP2P + ",".join(dict.fromkeys(peers))
    return tuple(dict.fromkeys(together if url in peers else checked_address(url) for url in node))
