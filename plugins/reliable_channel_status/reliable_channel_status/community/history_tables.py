"""Tables of a community's history, each with its row type."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from reliable_channel.sds.declared import Bound, Doc, Unit, check


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """Limits of the history, and the definition of a flood.

    Raises:
        ValueError: a value below 1.
    """

    flood_messages: Annotated[
        int,
        Bound(1),
        Doc(
            "Number of messages of an author within `flood_ms`, in all channels together, "
            "beyond which they are a flood."
        ),
    ] = 6
    flood_ms: Annotated[int, Bound(1)] = 10_000
    messages: Annotated[
        int,
        Bound(1),
        Unit("messages"),
        Doc("""Maximum number of messages in the history. Beyond the maximum, the oldest messages
            are dropped. Changes and reactions have a limit four times as high, and other tables
            have the same limit."""),
    ] = 1_000_000

    def __post_init__(self) -> None:
        check(self)


class Post(NamedTuple):
    """Message in its present form, which may be deleted."""

    message_id: str
    chat_id: str
    author: str
    """Public key of the message's author, `0x04…`."""
    sent_ms: int
    """Timestamp of the Waku message (ms)."""
    clock: int
    """Lamport timestamp of the message, which orders the channel."""
    text: str
    """Text of the message after its last edit. A deleted message keeps its last text."""
    first_text: str
    edits: int
    deleted_by: str | None
    """Public key of the user that deleted the message. For a message that was not deleted,
    `deleted_by` is None."""
    deleted_ms: int | None
    is_pinned: bool
    reactions: int
    """Number of reactions to the message that were not taken back."""
    response_to: str | None
    """Id of the message that this message answers."""


class Change(NamedTuple):
    """Edit, deletion or pin of a message, applied or refused."""

    message_id: str
    """Id of the changed message, which may be missing in the history."""
    chat_id: str
    signer: str
    what: str
    """Kind of the change, `edit`, `delete`, `pin` or `unpin`."""
    at_ms: int
    text: str | None
    """New text of the message, for an edit."""
    refused: str | None
    """Reason why clients do not apply the change (`its message is not here` if the message is
    missing). For an applied change, `refused` is None."""


class StandingReaction(NamedTuple):
    """Reaction to a message that was not taken back."""

    message_id: str
    chat_id: str
    author: str
    reaction: str
    at_ms: int


class MemberChange(NamedTuple):
    """Membership change between two descriptions, or a user's request."""

    member: str
    what: str
    """Kind of the membership change, such as `joined`, `left`, `banned` or `unbanned`. With the
    community's key, the table also has `asked to join` and `asked to leave`."""
    at_ms: int
    clock: int
    """Clock of the description or the request (ms)."""


class AuthorRate(NamedTuple):
    """Counts of an author's messages in one channel."""

    chat_id: str
    author: str
    name: str
    """Display name that the author used last. Display names are not unique, because any user may
    use any name."""
    messages: int
    repeated: int
    """Number of messages with a text that the author had sent before, ignoring case and spaces."""
    with_links: int
    most_in_a_minute: int
    deleted_by_others: int
    refused: int
    """Number of messages that clients drop, for example because the author is not a member."""


class Flood(NamedTuple):
    """Time range in which an author sent more messages than allowed."""

    author: str
    begin_ms: int
    end_ms: int
    messages: int
    chat_ids: tuple[str, ...]


class CommunityTables(NamedTuple):
    """Tables of a community's history, each in order of time."""

    posts: list[Post]
    changes: list[Change]
    reactions: list[StandingReaction]
    members: list[MemberChange]
    rates: list[AuthorRate]
    """Message counts of authors, with the most active author first."""
    floods: list[Flood]
    refused: dict[str, int]
    """Number of refused Waku messages and payloads, by reason."""
    channel_names: dict[str, str]
    """Names of the channels in the last description, by `chat_id`."""
