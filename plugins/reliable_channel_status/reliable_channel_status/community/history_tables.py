"""The tables of a community's history: one row type each."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from reliable_channel.sds.declared import Bound, Doc, Unit, check


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """What counts as a flood, and how much is kept.

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
        Doc("""Messages that are kept; the oldest are dropped first. Four times as many changes
        and reactions, and as many membership changes, authors and floods."""),
    ] = 1_000_000

    def __post_init__(self) -> None:
        check(self)


class Post(NamedTuple):
    """A message as it is now; also one that was deleted."""

    message_id: str
    chat_id: str
    author: str
    """Public key, `0x04…`."""
    sent_ms: int
    """Of the Waku message."""
    clock: int
    """Lamport timestamp: the order of the channel."""
    text: str
    """After the last edit; of a deleted message what was deleted."""
    first_text: str
    edits: int
    deleted_by: str | None
    """Public key; None where it stands."""
    deleted_ms: int | None
    is_pinned: bool
    reactions: int
    """That were not taken back."""
    response_to: str | None
    """The message that it answers."""


class Change(NamedTuple):
    """An edit, deletion or pin that was sent, taken or not."""

    message_id: str
    """Of the message that it is about, which may not be here."""
    chat_id: str
    signer: str
    what: str
    """`edit`, `delete`, `pin` or `unpin`."""
    at_ms: int
    text: str | None
    """The new text of an edit."""
    refused: str | None
    """Why clients do not apply it, or why that is unknown; `its message is not here` where that is
    so. None if they do."""


class StandingReaction(NamedTuple):
    """A reaction that was not taken back."""

    message_id: str
    chat_id: str
    author: str
    reaction: str
    at_ms: int


class MemberChange(NamedTuple):
    """What a description says that the one before it did not; or what a user asked for."""

    member: str
    what: str
    """`joined`, `left`, `banned`, `unbanned`, `roles: …`; with the community's key also `asked to
    join` and `asked to leave`."""
    at_ms: int
    clock: int
    """Of the description or request, in milliseconds."""


class AuthorRate(NamedTuple):
    """What an author sent in one channel."""

    chat_id: str
    author: str
    name: str
    """What the author called itself last: any user may take any name."""
    messages: int
    repeated: int
    """Messages whose text, but for case and spaces, the author had sent before in any channel."""
    with_links: int
    most_in_a_minute: int
    deleted_by_others: int
    refused: int
    """Messages that clients drop, such as those of users that are no members."""


class Flood(NamedTuple):
    """A time in which an author sent more than allowed."""

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
    """The liveliest first."""
    floods: list[Flood]
    refused: dict[str, int]
    """How many Waku messages and payloads were not taken, by reason."""
    channel_names: dict[str, str]
    """By `chat_id`, of the last description."""
