"""Names and limits of Waku's protocols over libp2p."""

from __future__ import annotations

from enum import Enum
from typing import Final

from waku.models import HASH_BYTES

__all__ = [
    "FILTER_PUSH",
    "FILTER_SUBSCRIBE",
    "LIGHT_PUSH_2",
    "LIGHT_PUSH_3",
    "METADATA",
    "PEER_EXCHANGE",
    "ROLE_PROTOCOLS",
    "STORE_3",
    "Role",
]

LIGHT_PUSH_2: Final = "/vac/waku/lightpush/2.0.0-beta1"
LIGHT_PUSH_3: Final = "/vac/waku/lightpush/3.0.0"
FILTER_SUBSCRIBE: Final = "/vac/waku/filter-subscribe/2.0.0-beta1"
FILTER_PUSH: Final = "/vac/waku/filter-push/2.0.0-beta1"
STORE_3: Final = "/vac/waku/store-query/3.0.0"
METADATA: Final = "/vac/waku/metadata/1.0.0"
PEER_EXCHANGE: Final = "/vac/waku/peer-exchange/2.0.0-alpha1"


class Role(Enum):
    """Service that a light client uses at a service peer."""

    LIGHT_PUSH = "light push"
    FILTER = "filter"
    STORE = "store"


ROLE_PROTOCOLS: Final = {
    Role.LIGHT_PUSH: frozenset({LIGHT_PUSH_3, LIGHT_PUSH_2}),
    Role.FILTER: frozenset({FILTER_SUBSCRIBE}),
    Role.STORE: frozenset({STORE_3}),
}
"""Protocols by which a peer serves a role. A peer with one of the protocols serves the role."""

MAX_MESSAGE_BYTES: Final = 150 * 1024
"""Default limit of an encoded message in nwaku and go-waku (bytes)."""
OVERHEAD_BYTES: Final = 64 * 1024
"""Allowance for data besides a message (bytes), such as its topic, its hash and a request id."""
MAX_PUSH_BYTES: Final = MAX_MESSAGE_BYTES + OVERHEAD_BYTES
"""Maximum size of a light push or a filter push in nwaku (bytes)."""
MAX_ANSWER_BYTES: Final = 64 * 1024
"""Maximum size of metadata, and of answers with a status and a sentence (bytes)."""
MAX_PAGE_ENTRIES: Final = 100
"""Maximum number of messages in one page of a Store, in every implementation."""
MAX_PAGE_BYTES: Final = MAX_PAGE_ENTRIES * (MAX_MESSAGE_BYTES + OVERHEAD_BYTES)
"""Maximum size of a Store page in nwaku (bytes, `MaxRpcSize`)."""
MAX_CONTENT_TOPICS: Final = 100
"""Maximum number of content topics in one filter request, in nwaku and go-waku."""
MAX_EXCHANGED_PEERS: Final = 60
"""Maximum number of node records that are read from one answer of peer exchange. nwaku sends at
most 60 records."""
MAX_HASHES: Final = MAX_PAGE_BYTES // MAX_PAGE_ENTRIES // HASH_BYTES
"""Maximum number of message hashes in one Store query."""
