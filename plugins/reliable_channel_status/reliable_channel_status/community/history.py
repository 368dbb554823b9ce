"""Tables of a community's history, made from the Waku messages that a node stored.

Edits, deletions, pins and reactions are applied with the rights in the description of their time.
The tables show what a member with the same keys sees. The keys of content topics follow from the
ids, and encrypted messages need the group keys. The module has no I/O and no clock. The times in
the tables are those that the senders of the messages set.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from waku import WakuMessage

from ..wire.chats import Community
from ..wire.community_payloads import (
    CommunityDescription,
    CommunityRequestToJoin,
    CommunityRequestToLeave,
)
from ..wire.conversation import Applied, Conversation, ConversationLimits, everybody
from ..wire.enums import SIX_EMOJI
from ..wire.keys import PrivateKey
from ..wire.layers import GroupLayer
from ..wire.opening import Opener
from ..wire.outcomes import Ignored, Received, RefusalReason, Refused
from ..wire.payloads import (
    ChatMessage,
    ChatPayload,
    DeleteMessage,
    EditMessage,
    EmojiReaction,
    PinMessage,
)
from ..wire.recent import Recent
from .history_tables import (
    AuthorRate,
    Change,
    CommunityTables,
    Flood,
    HistoryOptions,
    MemberChange,
    Post,
    StandingReaction,
)
from .rules import is_privileged, why_invalid, why_not_heard

_LINK: Final = re.compile(r"https?://|\bwww\.", re.IGNORECASE)
_SPACE: Final = re.compile(r"\s+")


_ABSENT: Final = "its message is not here"
RIGHTS_UNKNOWN: Final = "unknown: no description of the community was stored before it"


class CommunityHistory:
    """Builder of the history's tables, from stored Waku messages in order of time.

    Args:
        community: whose history it is.
        channels: uuids; needed where clients give each channel its own topic (2024 and before).
        private_keys: such as the community's own, which opens requests to join.
        groups: the group keys of a member, for encrypted communities and channels.
        options: what a flood is, and how much is kept.

    Raises:
        ValueError: a channel that is not a uuid.
    """

    def __init__(
        self,
        community: Community,
        *,
        channels: Iterable[str] = (),
        private_keys: Sequence[PrivateKey] = (),
        groups: GroupLayer | None = None,
        options: HistoryOptions | None = None,
    ) -> None:
        self._community = community
        self._options = options or HistoryOptions()
        topics = [community.universal_topic, community.description_topic]
        topics += [community.channel_topic(channel, "per-channel") for channel in channels]
        if any(key.public_key == community.public_key for key in private_keys):
            topics.append(community.requests_topic)
        self._opener = Opener(topics, private_keys=private_keys, groups=groups)
        most = self._options.messages
        self._conversation = Conversation(
            is_privileged=lambda user, _: (
                self._description is not None and is_privileged(self._description, user)
            ),
            may_pin=everybody,  # `why_not_heard` looks at that before
            limits=ConversationLimits(
                messages=most, waiting=most, reactions=4 * most, fingerprints=4 * most
            ),
        )
        self._description: CommunityDescription | None = None
        self._posts: Recent[str, Post] = Recent(most)
        self._changes: Recent[str, Change] = Recent(4 * most)
        """By the id of the payload that makes the change."""
        self._absent: Recent[str, list[str]] = Recent(most)
        """By a message that is not here: the changes that are about it."""
        self._reactions: Recent[tuple[str, str, str], StandingReaction] = Recent(4 * most)
        self._members: deque[MemberChange] = deque(maxlen=most)
        self._rates: Recent[tuple[str, str], _Rate] = Recent(most)
        self._pace: Recent[str, deque[tuple[int, str]]] = Recent(most)
        """By author the newest messages: when, and in which channel."""
        self._floods: Recent[tuple[str, int], Flood] = Recent(most)
        self._last_flood: Recent[str, tuple[str, int]] = Recent(most)
        self._texts: Recent[tuple[str, str], None] = Recent(most)
        self._refused: Counter[str] = Counter()
        self._now_ms = 0

    @property
    def content_topics(self) -> tuple[str, ...]:
        """Content topics for queries of the community's messages in Store."""
        return self._opener.content_topics

    def add(self, message: WakuMessage) -> None:
        """Add a stored message to the history. Messages of the same millisecond may be added in any
        order, but each only once."""
        self._now_ms = max(self._now_ms, message.timestamp // 1_000_000)
        for outcome in (*self._opener.receive(message, self._now_ms), *self._opener.waited()):
            if isinstance(outcome, Refused):
                self._refused[outcome.reason.value] += 1
            elif not isinstance(outcome, Ignored):
                self._take(outcome)

    def tables(self) -> CommunityTables:
        """Return the tables of all messages that were added."""
        posts = list(self._standing())
        deleted = Counter(
            (post.chat_id, post.author)
            for post in posts
            if post.deleted_by not in (None, post.author)
        )
        rates = [
            rate.row(chat_id, author, deleted[chat_id, author])
            for (chat_id, author), rate in self._rates.items()
        ]
        return CommunityTables(
            sorted(posts, key=lambda post: (post.sent_ms, post.clock, post.message_id)),
            sorted(self._changes.values(), key=lambda change: change.at_ms),
            sorted(self._reactions.values(), key=lambda reaction: reaction.at_ms),
            list(self._members),
            sorted(rates, key=lambda rate: (-rate.messages, -rate.refused, rate)),
            sorted(self._floods.values(), key=lambda flood: flood.begin_ms),
            dict(self._refused.most_common()),
            self._channel_names(),
        )

    def _standing(self) -> Iterator[Post]:
        """The messages as the conversation has them, with what changed them."""
        edits, deletions = Counter[str](), dict[str, Change]()
        for change in self._changes.values():
            if change.refused is None and change.what == "edit":
                edits[change.message_id] += 1
            elif change.refused is None and change.what == "delete":
                deletions.setdefault(change.message_id, change)
        reactions = Counter(reaction.message_id for reaction in self._reactions.values())
        for message_id, post in self._posts.items():
            state = self._conversation.message(message_id)
            if state is None:
                continue
            deletion = deletions.get(message_id) if state.is_deleted else None
            yield post._replace(
                text=state.text if state.edit_clock else post.text,
                edits=edits[message_id],
                deleted_by=None if deletion is None else deletion.signer,
                deleted_ms=None if deletion is None else deletion.at_ms,
                is_pinned=state.is_pinned,
                reactions=reactions[message_id],
            )

    def _channel_names(self) -> dict[str, str]:
        chats = {} if self._description is None else self._description.chats
        return {
            self._community.id + channel: chat.identity.display_name
            for channel, chat in chats.items()
            if chat.identity is not None
        }

    def _take(self, received: Received) -> None:
        payload = received.payload
        if isinstance(payload, CommunityDescription):
            self._describe(received, payload)
        elif isinstance(payload, CommunityRequestToJoin | CommunityRequestToLeave):
            is_leaving = isinstance(payload, CommunityRequestToLeave)
            asked = "asked to leave" if is_leaving else "asked to join"
            member, at_ms = received.signer.hex, received.timestamp_ms
            self._members.append(MemberChange(member, asked, at_ms, payload.clock * 1_000))
        elif isinstance(payload, ChatPayload) and self._community.owns(payload.chat_id):
            self._say(received, payload)

    def _describe(self, received: Received, description: CommunityDescription) -> None:
        before = self._description
        if received.signer != self._community.public_key or why_invalid(description):
            self._refused["invalid description"] += 1
            return
        if before is not None and description.clock <= before.clock:
            return  # clients repeat it
        self._description = description
        at_ms, clock = received.timestamp_ms, description.clock
        changes = _differences(before, description) if before is not None else ()
        self._members.extend(MemberChange(*change, at_ms, clock) for change in changes)

    def _say(self, received: Received, payload: ChatPayload) -> None:
        author, at_ms = received.signer.hex, received.timestamp_ms or payload.clock
        refused = self._why_not_heard(received, payload)
        outcome = None if refused else self._conversation.apply(received, self._now_ms)
        if isinstance(outcome, Refused):
            if outcome.reason is RefusalReason.REPEATED:
                return
            self._refused[outcome.reason.value] += 1
            refused = outcome.detail
        match payload:
            case ChatMessage():
                self._count(payload, author, at_ms, is_refused=refused is not None)
                if refused is None:
                    self._note(received, payload, at_ms)
                    self._no_longer_absent(outcome)
            case EditMessage() | DeleteMessage() | PinMessage():
                if refused is None and not isinstance(outcome, Applied):
                    refused = _ABSENT
                    waiting = self._absent.setdefault(payload.message_id, [])
                    waiting.append(received.message_id)
                change = _change(received, payload, at_ms, refused)
                self._changes[received.message_id] = change
            case EmojiReaction() if refused is None:
                self._react(payload, author, at_ms)

    def _why_not_heard(self, received: Received, payload: ChatPayload) -> str | None:
        """By the description in force; rights are unknown before the first one."""
        if self._description is None:
            if self._needs_rights(received, payload):
                self._refused["rights unknown"] += 1
                return RIGHTS_UNKNOWN
            return None
        why = why_not_heard(self._description, self._community, received.signer, payload)
        if why is not None:
            self._refused[RefusalReason.NOT_A_MEMBER.value] += 1
        return why

    def _needs_rights(self, received: Received, payload: ChatPayload) -> bool:
        if not isinstance(payload, DeleteMessage):
            return isinstance(payload, PinMessage)
        message = self._conversation.message(payload.message_id)
        return message is not None and message.author != received.signer

    def _note(self, received: Received, payload: ChatMessage, at_ms: int) -> None:
        self._posts[received.message_id] = Post(
            received.message_id,
            payload.chat_id,
            received.signer.hex,
            at_ms,
            payload.clock,
            text := _text(payload),
            first_text=text,
            edits=0,
            deleted_by=None,
            deleted_ms=None,
            is_pinned=False,
            reactions=0,
            response_to=payload.response_to or None,
        )

    def _no_longer_absent(self, outcome: object) -> None:
        """What waited for a message which has come is applied now, or refused."""
        if not isinstance(outcome, Applied) or outcome.after is None:
            return
        refused: dict[str | None, str] = {e.message_id: e.detail for e in outcome.refused}
        for key in self._absent.pop(outcome.after.message_id, ()):
            if (change := self._changes.get(key)) is not None:
                self._changes[key] = change._replace(refused=refused.get(key))

    def _count(self, payload: ChatMessage, author: str, at_ms: int, *, is_refused: bool) -> None:
        """Refused messages make a flood too: nodes relay them and phones receive them."""
        key = payload.chat_id, author
        rate = self._rates.get(key) or _Rate()
        self._rates.renew(key, rate)
        text = _SPACE.sub(" ", _text(payload)).strip().casefold()
        is_repeated = bool(text) and (author, text) in self._texts
        self._texts.renew((author, text), None)
        rate.add(payload, at_ms, is_repeated=is_repeated, is_refused=is_refused)
        self._watch_for_floods(author, payload.chat_id, at_ms)

    def _watch_for_floods(self, author: str, chat_id: str, at_ms: int) -> None:
        pace = self._pace.get(author)
        if pace is None:
            pace = deque(maxlen=self._options.flood_messages + 1)
        pace.append((at_ms, chat_id))
        self._pace.renew(author, pace)
        begin_ms, _ = pace[0]
        if len(pace) <= self._options.flood_messages or at_ms - begin_ms > self._options.flood_ms:
            self._last_flood.pop(author, None)
            return
        flood = self._floods.get(self._last_flood.get(author, ("", 0)))
        if flood is None:
            chat_ids = tuple(dict.fromkeys(chat for _, chat in pace))
            flood = Flood(author, begin_ms, at_ms, len(pace), chat_ids)
        else:
            chat_ids = tuple(dict.fromkeys((*flood.chat_ids, chat_id)))
            flood = flood._replace(end_ms=at_ms, messages=flood.messages + 1, chat_ids=chat_ids)
        self._last_flood.renew(author, (author, flood.begin_ms))
        self._floods[author, flood.begin_ms] = flood

    def _react(self, payload: EmojiReaction, author: str, at_ms: int) -> None:
        kind = payload.type.name if payload.type in SIX_EMOJI else payload.emoji
        key = payload.message_id, author, kind
        self._reactions.pop(key, None)
        if not payload.retracted:
            reaction = StandingReaction(payload.message_id, payload.chat_id, author, kind, at_ms)
            self._reactions[key] = reaction


class _Rate:
    """Counts what one author sends in one channel."""

    def __init__(self) -> None:
        self._name = ""
        self._messages = self._repeated = self._with_links = self._refused = 0
        self._minute = self._in_this_minute = self._most_in_a_minute = 0

    def add(self, payload: ChatMessage, at_ms: int, *, is_repeated: bool, is_refused: bool) -> None:
        self._name = payload.display_name or self._name
        self._messages += not is_refused
        self._refused += is_refused
        self._repeated += is_repeated
        self._with_links += _LINK.search(_text(payload)) is not None
        minute = at_ms // 60_000
        self._in_this_minute = self._in_this_minute + 1 if minute == self._minute else 1
        self._minute = minute
        self._most_in_a_minute = max(self._most_in_a_minute, self._in_this_minute)

    def row(self, chat_id: str, author: str, deleted_by_others: int) -> AuthorRate:
        """The row of a table."""
        return AuthorRate(
            chat_id,
            author,
            self._name,
            self._messages,
            self._repeated,
            self._with_links,
            self._most_in_a_minute,
            deleted_by_others,
            self._refused,
        )


def _text(payload: ChatMessage) -> str:
    bridged = payload.bridge_message
    return payload.text if bridged is None else bridged.content


def _change(
    received: Received,
    payload: EditMessage | DeleteMessage | PinMessage,
    at_ms: int,
    refused: str | None,
) -> Change:
    match payload:
        case EditMessage():
            what = "edit"
        case DeleteMessage():
            what = "delete"
        case PinMessage():
            what = "pin" if payload.pinned else "unpin"
    text = payload.text if isinstance(payload, EditMessage) else None
    signer = received.signer.hex
    return Change(payload.message_id, payload.chat_id, signer, what, at_ms, text, refused)


def _differences(
    before: CommunityDescription, after: CommunityDescription
) -> Iterator[tuple[str, str]]:
    """Members, and what became of them."""
    banned, were_banned = _banned(after), _banned(before)
    yield from ((user, "banned") for user in sorted(banned - were_banned))
    yield from ((user, "unbanned") for user in sorted(were_banned - banned))
    gone = before.members.keys() - after.members.keys() - banned
    yield from ((user, "left") for user in sorted(gone))
    yield from ((user, "joined") for user in sorted(after.members.keys() - before.members.keys()))
    for user in sorted(after.members.keys() & before.members.keys()):
        roles = after.members[user].roles
        if set(roles) != set(before.members[user].roles):
            names = ", ".join(sorted(role.name for role in roles)) or "none"
            yield user, f"roles: {names}"


def _banned(description: CommunityDescription) -> set[str]:
    return {*description.banned_members, *description.ban_list}
