"""Scripted user of a bot's chats in a test."""

from dataclasses import replace
from hashlib import sha256
from typing import Final, Protocol

from waku import WakuMessage

from ..community.join_requests import join_request
from ..wire import payload_builders
from ..wire.chats import Community
from ..wire.enums import Reaction
from ..wire.keys import PrivateKey, PublicKey
from ..wire.outcomes import MessageId
from ..wire.payload_builders import Make
from ..wire.payloads import ChatMessage, Payload
from ..wire.rooms import Room
from ..wire.sealing import Outgoing, Sealer
from .fake_direct import FakeDirect
from .unanswered import Mark

SETTLE_S: Final = 1.0
"""Virtual time after an action of a user, in which the bot reacts (s)."""
ANSWER_S: Final = 60.0


class Chats(Protocol):
    """Parts of the test that a user needs, which are time, chats, and the bot's answers."""

    def now_ms(self) -> int:
        """Return the current virtual time (ms since 1970)."""

    def next_clock(self) -> int:
        """Return the logical clock for a user's next action."""

    def wait(self) -> None:
        """Let the virtual time `SETTLE_S` pass."""

    def room(self, channel: str | None) -> Room:
        """Return the chat of the bot with the given name, or the bot's first chat."""

    def seal(self, payload: Payload, room: Room, key: PrivateKey) -> Outgoing:
        """Return the Waku payload with a user's message in a chat."""

    def publish(self, message: WakuMessage, *, settle: bool = True) -> None:
        """Publish a message on the bot's shard."""

    def answers(self, message_id: MessageId) -> list[str]:
        """Return the bot's answers to a message."""

    def mark(self) -> Mark:
        """Return the present moment of the test, for `why_unanswered`."""

    def why_unanswered(self, text: str, since: Mark) -> str:
        """Return the reason why the bot did not answer a message that was written after a
        moment."""

    def direct(self, name: str, key: PrivateKey) -> FakeDirect:
        """Return a user's direct messages with the bot."""


def key_of(name: str) -> PrivateKey:
    """Return the private key of a user in a test. The key depends only on the user's name, and is
    not secret."""
    return PrivateKey(sha256(f"BotTester {name}".encode()).digest())


class FakeUser:
    """Scripted user in a test of a bot."""

    def __init__(self, tester: Chats, name: str, key: PrivateKey) -> None:
        self.name = name
        self.key = key
        self._tester = tester
        self._sealer = Sealer(key)

    @property
    def public_key(self) -> PublicKey:
        return self.key.public_key

    def says(
        self, text: str, *, channel: str | None = None, to: str = "", settle: bool = True
    ) -> MessageId:
        """Write a message, perhaps as an answer to another message. `says` returns the id of the
        message."""
        room = self._tester.room(channel)
        return self.does(payload_builders.message(room, text, response_to=to), room, settle=settle)

    def asks(self, text: str, *, channel: str | None = None, to: str = "") -> str:
        """Write a message and return the text of the bot's answer.

        Raises:
            AssertionError: there is none within a minute of virtual time; it says why.
        """
        since = self._tester.mark()
        message_id = self.says(text, channel=channel, to=to)
        for _ in range(round(ANSWER_S / SETTLE_S)):
            if answers := self._tester.answers(message_id):
                return answers[0]
            self._tester.wait()
        why = self._tester.why_unanswered(text, since)
        raise AssertionError(f"the bot did not answer {text!r} of {self.name}: {why}")

    def edits(self, message_id: str, text: str, *, channel: str | None = None) -> None:
        """Replace the text of a message that the user wrote."""
        room = self._tester.room(channel)
        self.does(payload_builders.edit(room, message_id, text), room)

    def deletes(self, message_id: str, *, channel: str | None = None) -> None:
        room = self._tester.room(channel)
        self.does(payload_builders.deletion(room, message_id), room)

    def reacts(
        self,
        message_id: str,
        reaction: Reaction | str,
        *,
        retracted: bool = False,
        channel: str | None = None,
    ) -> None:
        """React to a message with an emoji, or take the reaction back."""
        room = self._tester.room(channel)
        self.does(payload_builders.reaction(room, message_id, reaction, retracted), room)

    def does(self, make: Make, room: Room, *, settle: bool = True) -> MessageId:
        """Publish a chat message with any payload, and return its id."""
        now_ms = self._tester.now_ms()
        payload: Payload = make(self._tester.next_clock(), now_ms)
        if isinstance(payload, ChatMessage):
            payload = replace(payload, display_name=self.name)
        outgoing = self._tester.seal(payload, room, self.key)
        for message in outgoing.messages:
            self._tester.publish(message, settle=False)
        if settle:
            self._tester.wait()
        return outgoing.message_id

    @property
    def direct(self) -> FakeDirect:
        """Direct messages of the user with the bot."""
        return self._tester.direct(self.name, self.key)

    def requests_to_join(self, community: Community) -> None:
        """Request to join the community."""
        now_ms = self._tester.now_ms()
        request = join_request(self.key, community, now_ms, display_name=self.name)
        topic = community.requests_topic
        sealed = self._sealer.seal(request, topic, now_ms, receiver=community.public_key)
        self._tester.publish(sealed.messages[0])
