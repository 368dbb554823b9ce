"""py-waku: a client for the REST API of Waku nodes, and a light client and relay leaf that need no
node."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from waku.client import RetryPolicy, WakuClient
    from waku.errors import WakuError
    from waku.hashing import message_hash
    from waku.models import StoreQuery, WakuMessage
    from waku.p2p import LightClient, RelayLeaf
    from waku.topics import ContentTopic, PubsubTopic, pubsub_topic_for, shard_for

__all__ = [
    "ContentTopic",
    "LightClient",
    "PubsubTopic",
    "RelayLeaf",
    "RetryPolicy",
    "StoreQuery",
    "WakuClient",
    "WakuError",
    "WakuMessage",
    "message_hash",
    "pubsub_topic_for",
    "shard_for",
]

__distribution__: Final = "reliable-channel"
"""An unrelated distribution also installs a package `waku`: by this, ours is known."""

_HOME_OF: Final = {
    "ContentTopic": "topics",
    "LightClient": "p2p",
    "PubsubTopic": "topics",
    "RelayLeaf": "p2p",
    "RetryPolicy": "client",
    "StoreQuery": "models",
    "WakuClient": "client",
    "WakuError": "errors",
    "WakuMessage": "models",
    "message_hash": "hashing",
    "pubsub_topic_for": "topics",
    "shard_for": "topics",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load a name when it is used: the client costs an HTTP library, the light client an
        extra."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f"waku.{_HOME_OF[name]}"), name)
        except ModuleNotFoundError as error:
            if _HOME_OF[name] != "p2p" or error.name not in ("cryptography", "dns", "websockets"):
                raise
            raise ImportError(
                f"`{name}` needs {error.name}: pip install 'reliable-channel[libp2p]'"
            ) from error

    def __dir__() -> list[str]:
        return __all__
