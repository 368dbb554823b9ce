"""Tables of a community's history, with one row type each."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from reliable_channel.sds.declared import Bound, Doc, Unit, check


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """Definition of a flood, and limits of the history.

    Raises:
        ValueError: a value below 1.
    """

    flood_messages: Annotated[
        int,
        Bound(1),
        Doc("More messages of an author in `flood_ms`, in all channels together, are a flood."),
    ] = 6
    flood_ms: Annotated[int, Bound(1)] = 10_000
    messages: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc("""The messages that are kept. The oldest are dropped first. The limit is four times as
        high for changes and reactions, and equal for membership changes, authors and floods."""),
    ] = 1_000_000

    def __post_init__(self) -> None:
        check(self)


class Post(NamedTuple):
    """Message in its present form, deleted ones included."""

    message_id: str
    chat_id: str
    author: str
    """Public key of the author, `0x04…`."""
    sent_ms: int
    """Timestamp of the Waku message."""
    clock: int
    """Lamport timestamp, which orders the channel."""
    text: str
    """Text after the last edit. A deleted message keeps its last text."""
    first_text: str
    edits: int
    deleted_by: str | None
    """Public key of the user that deleted it. None if it was not deleted."""
    deleted_ms: int | None
    is_pinned: bool
    reactions: int
    """Reactions that were not taken back."""
    response_to: str | None
    """Id of the message that this one answers."""


class Change(NamedTuple):
    """Edit, deletion or pin that was sent, applied or not."""

    message_id: str
    """Id of the message that it changes, which may be missing here."""
    chat_id: str
    signer: str
    what: str
    """Kind of the change: `edit`, `delete`, `pin` or `unpin`."""
    at_ms: int
    text: str | None
    """New text of an edit."""
    refused: str | None
    """Reason why clients do not apply it (`its message is not here` if the message is missing).
    None if they do."""


class StandingReaction(NamedTuple):
    """Reaction that was not taken back."""

    message_id: str
    chat_id: str
    author: str
    reaction: str
    at_ms: int


class MemberChange(NamedTuple):
    """Change between two descriptions, or a request of a user."""

    member: str
    what: str
    """Kind of the change: `joined`, `left`, `banned`, `unbanned` or `roles: …`. With the
    community's key also `asked to join` and `asked to leave`."""
    at_ms: int
    clock: int
    """Clock of the description or request (ms)."""


class AuthorRate(NamedTuple):
    """Messages of an author in one channel."""

    chat_id: str
    author: str
    name: str
    """Name that the author used last. Any user may use any name."""
    messages: int
    repeated: int
    """Messages whose text the author had sent before in any channel, ignoring case and spaces."""
    with_links: int
    most_in_a_minute: int
    deleted_by_others: int
    refused: int
    """Messages that clients drop, for example of users that are no members."""


class Flood(NamedTuple):
    """Time in which an author sent more than allowed."""

    author: str
    begin_ms: int
    end_ms: int
    messages: int
    chat_ids: tuple[str, ...]


class CommunityTables(NamedTuple):
    """All tables of a history, in order of time."""

    posts: list[Post]
    changes: list[Change]
    reactions: list[StandingReaction]
    members: list[MemberChange]
    rates: list[AuthorRate]
    """Authors, the most active first."""
    floods: list[Flood]
    refused: dict[str, int]
    """Number of refused Waku messages and payloads, by reason."""
    channel_names: dict[str, str]
    """Channels of the last description, by `chat_id`."""
