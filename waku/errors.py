"""Errors of the package `waku`, in one tree.

    WakuError                   call, status, retryable, detail
    ├── LocalError              the caller must change something
    │   ├── InvalidTopic        not a content topic or static shard (also a ValueError)
    │   ├── BadRequest          the node refuses what the request says
    │   │   ├── MessageTooLarge
    │   │   └── RlnProofRequired
    │   ├── NotSubscribed       subscribe first
    │   ├── NotFound            no such peer
    │   ├── ClientClosed        used after `aclose()`
    │   └── PageLimitReached    a query longer than the caller allows
    ├── RemoteError             the node answered, and not with what was asked for
    │   ├── BadAnswer           garbage, HTML, wrong JSON, or too much
    │   ├── CursorExpired       the node no longer knows the page's cursor
    │   ├── RateLimited         retryable
    │   ├── OutOfRlnProofs      retryable
    │   └── NodeFailure         retryable: 5xx without a better name
    └── EnvironmentFailure      neither side is wrong. The surroundings are
        ├── NodeUnreachable     retryable: no connection, no answer in time, cut in the middle
        ├── NoPeers             retryable: the node found no peer that could do it
        ├── WrongNetwork        a peer of another cluster, or of none of our shards
        └── EndpointMissing     the node does not offer this API

The class tells which side is wrong, and `retryable` if the same call may succeed later. A retry may
still repeat an effect, and `NodeUnreachable.sent` tells if the node may have acted.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "BadAnswer",
    "BadRequest",
    "ClientClosed",
    "CursorExpired",
    "EndpointMissing",
    "EnvironmentFailure",
    "InvalidTopic",
    "LocalError",
    "MessageTooLarge",
    "NoPeers",
    "NodeFailure",
    "NodeUnreachable",
    "NotFound",
    "NotSubscribed",
    "OutOfRlnProofs",
    "PageLimitReached",
    "RateLimited",
    "RemoteError",
    "RlnProofRequired",
    "WakuError",
    "WrongNetwork",
]

DETAIL_LIMIT = 200
"""Maximum number of characters of a node's text that an error quotes."""


class WakuError(Exception):
    """A call to a Waku node failed, or could not be made."""

    retryable: ClassVar[bool] = False
    advice: ClassVar[str] = "read the node's log"

    call: str
    """Method of the client, with the verb and path of the request if a request was sent."""
    status: int | None
    """HTTP status, or the status inside an answer with status 200, or None without an answer."""
    detail: str
    """Text of the node or the operating system, at most `DETAIL_LIMIT` characters."""

    def __init__(self, call: str, *, detail: str = "", status: int | None = None) -> None:
        self.call = call
        self.status = status
        self.detail = shorten(detail)
        answer = "" if status is None else f" answered {status}"
        reason = f": {self.detail}" if self.detail else ""
        super().__init__(f"{call}{answer}{reason}; {self.advice}")


class LocalError(WakuError):
    """The caller must change something, because the call cannot succeed as it is."""


class RemoteError(WakuError):
    """The node answered, but not with a success."""


class EnvironmentFailure(WakuError):
    """The call failed for a reason outside the caller's program and the node."""


class InvalidTopic(LocalError, ValueError):
    """A text is neither a content topic nor the topic of a static shard."""

    advice = "write /application/version/name/encoding, or /waku/2/rs/<cluster>/<shard>"

    def __init__(self, topic: str, reason: str) -> None:
        super().__init__(f"topic {shorten(topic)!r}", detail=reason)
        self.topic = topic


class BadRequest(LocalError):
    """The node understood the call, but refuses its content."""

    advice = "correct the arguments"


class MessageTooLarge(BadRequest):
    """The encoded message is over the network's limit (150 KiB, and 1 MiB on status.prod)."""

    advice = "send less at once or segment the payload; `network` names a network's limit"


class RlnProofRequired(BadRequest):
    """The network needs a proof of its rate limit (RLN), which is missing or wrong (420)."""

    advice = (
        "use a network without RLN, or a service node that attaches proofs; "
        "this client cannot make them"
    )


class NotSubscribed(LocalError):
    """The node has no subscription to the topic, or has lost it."""

    advice = "subscribe first (if that says EndpointMissing, the node runs without this protocol)"


class NotFound(LocalError):
    """The node does not know the object that the call names."""

    advice = "check the id"


class ClientClosed(LocalError):
    """The client was used after `aclose()`."""

    advice = "make a new client, or close this one later"


class PageLimitReached(LocalError):
    """A store query has more pages than the caller allows."""

    advice = "narrow the query or raise max_pages"


class BadAnswer(RemoteError):
    """The answer is not an answer of a Waku node, for example HTML, other JSON, or too long."""

    advice = "check that the address is a Waku node's (for a REST client, its REST port)"


class CursorExpired(RemoteError):
    """The node does not know the cursor, because the message of the cursor was deleted."""

    advice = "start the query again from its first page"


class RateLimited(RemoteError):
    """The node, or the peer that serves it, received too many requests."""

    retryable = True
    advice = "wait and send fewer requests"


class OutOfRlnProofs(RemoteError):
    """The service node attaches proofs (RLN), but has no proof left in this epoch (504)."""

    retryable = True
    advice = "wait for the next epoch (ten minutes on The Waku Network) or use another service node"


class NodeFailure(RemoteError):
    """The node failed internally (5xx, from go-waku also 400), for a reason without its own
    class."""

    retryable = True


class NodeUnreachable(EnvironmentFailure):
    """The node could not be connected to, did not answer in time, or broke off its answer."""

    retryable = True
    advice = "check the address and that the node runs"

    def __init__(
        self, call: str, *, detail: str = "", sent: bool = True, timed_out: bool = False
    ) -> None:
        super().__init__(call, detail=detail)
        self.sent = sent
        """Whether the request may have reached the node (False: it certainly did not)."""
        self.timed_out = timed_out
        """True if the answer took too long."""


class NoPeers(EnvironmentFailure):
    """The node found no peer that could execute the call."""

    retryable = True
    advice = "wait for peers, or add one with add_peers()"


class WrongNetwork(EnvironmentFailure):
    """A peer belongs to another cluster than this client, or shares no shard with it."""

    advice = "use the cluster and shards of the peer, or a peer of your network"


class EndpointMissing(EnvironmentFailure):
    """The node does not offer this API, because of its version or a disabled protocol."""

    advice = "start the node with this protocol or use another call"


def shorten(text: str) -> str:
    """Return the text on one line, cut to `DETAIL_LIMIT` characters.

    An unpaired surrogate, which JSON can contain, becomes a question mark.
    """
    line = " ".join(text[: 4 * DETAIL_LIMIT].split()).encode(errors="replace").decode()
    return line if len(line) <= DETAIL_LIMIT else line[: DETAIL_LIMIT - 1] + "…"
