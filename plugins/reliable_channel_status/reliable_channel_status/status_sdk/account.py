"""`Account`: a bot that runs in a thread, with blocking calls and generators."""

import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any, Final, Self, TypeAlias, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from reliable_channel import ReliableChannelError

from ..bot import (
    Channel as BotChannel,
)
from ..bot import (
    ContactChange,
    JoinRequest,
    StatusBot,
)
from ..bot import ContactRequest as BotContactRequest
from ..bot import Message as BotMessage
from ..enums import Reaction
from ..payloads import BridgeMessage
from ..recent import Recent
from .models import CommunityRequest, ContactRequest, Content, Event, Message

MAX_WAITING: Final = 1_000
"""Events that a listener has not taken; then the oldest is dropped."""
MAX_REMEMBERED: Final = 10_000
"""Messages of which the chat is known, and contact requests that can be accepted."""
REACTIONS: Final = {
    "heart": Reaction.LOVE,
    "thumbsup": Reaction.THUMBS_UP,
    "+1": Reaction.THUMBS_UP,
    "thumbsdown": Reaction.THUMBS_DOWN,
    "-1": Reaction.THUMBS_DOWN,
    "laughing": Reaction.LAUGH,
    "cry": Reaction.SAD,
    "rage": Reaction.ANGRY,
}
"""The shortnames of the reactions that Status' protocol has."""

Payload: TypeAlias = Message | ContactRequest | CommunityRequest
Listener: TypeAlias = "Queue[tuple[Event, Payload] | None]"
T = TypeVar("T")


class NotLoggedIn(ReliableChannelError, RuntimeError):
    """The account does not run; call `login`."""


class Account:
    """A bot under the names of `status_sdk.Account`.

    Args:
        bot: not running yet; the communities that it is in are those of its arguments.
    """

    def __init__(self, bot: StatusBot) -> None:
        self.bot = bot
        self.missed = 0
        """Events that were dropped, as a listener did not take them."""
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._ended: Future[None] | None = None
        self._started = threading.Event()
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._chats: Recent[str, str] = Recent(MAX_REMEMBERED)
        self._requests: Recent[str, BotContactRequest] = Recent(MAX_REMEMBERED)
        bot.on_message(self._message)
        bot.on_group_message(self._message)
        bot.on_direct_message(self._message)
        bot.on_contact_request(self._contact_request)
        bot.on_contact_change(self._contact_change)
        bot.on_join_request(self._join_request)
        bot.task(self._has_started)

    def login(self) -> Self:
        """Start the bot in a thread; return when it has read the history.

        Raises:
            KeyFileError, StateError: as `StatusBot.run`.
        """
        if self._portal is not None:
            return self
        self._started.clear()
        self._portal = self._stack.enter_context(start_blocking_portal())
        self._ended = self._portal.start_task_soon(self.bot.run_async)
        self._ended.add_done_callback(self._has_ended)
        self._started.wait()
        if self._ended.done():
            ended = self._ended
            self.logout()
            ended.result()
            raise NotLoggedIn("the bot ended before it had read the history")
        return self

    def logout(self) -> None:
        """Stop the bot in good order; listeners end."""
        portal, ended = self._portal, self._ended
        if portal is None or ended is None:
            return
        self._portal = self._ended = None
        if not ended.done():
            portal.call(self.bot.stop)
            ended.exception()
        self._stack.close()

    def __enter__(self) -> Self:
        return self.login()

    def __exit__(self, *error: object) -> None:
        self.logout()

    # -- who --------------------------------------------------------------------------------------

    @property
    def info(self) -> dict[str, str]:
        """`public_key` and `compressed_key`."""
        key = self.call(lambda: self.bot.public_key)
        return {"public_key": key.hex, "compressed_key": key.multibase}

    @property
    def display_name(self) -> str:
        """The bot's name: `BotOptions(display_name=…)`."""
        return self.bot.options.display_name

    @property
    def contacts(self) -> dict[str, dict[str, Any]]:
        """The contacts, by public key."""
        keys = self.call(lambda: self.bot.contacts)
        names = {key.hex: self.call(self.bot.name_of, key) for key in keys}
        return {
            key: {"public_key": key, "chat_id": key, "display_name": name, "mutual": True}
            for key, name in names.items()
        }

    def add_contact(self, public_key: str, request_id: str | None = None, text: str = "Hi") -> None:
        """Accept a contact request, or ask a user to be a contact.

        Raises:
            KeyError: no such request was heard.
        """
        if request_id is not None:
            self.wait(self._requests[request_id].accept)
        else:
            self.wait(self.bot.request_contact, public_key, text)

    def remove_contact(self, public_key: str) -> bool:
        """End a contact."""
        self.wait(self.bot.remove_contact, public_key)
        return True

    # -- saying -----------------------------------------------------------------------------------

    def send_message(
        self, chat_id: str, message: str, reply_to_message_id: str | None = None
    ) -> str:
        """Write in a chat: a channel's id or uuid, a group's id, a user's public key."""
        return self._send(chat_id, message, response_to=reply_to_message_id or "")

    def send_image(
        self,
        chat_id: str,
        file_paths: str | Path | list[str],
        message: str | None = None,
        reply_to_message_id: str | None = None,
    ) -> str:
        """Send images, each as a message; return the id of the last."""
        paths = [file_paths] if isinstance(file_paths, str | Path) else file_paths
        if not paths:
            raise ValueError("`file_paths` must name an image")
        for path in paths:
            image = Path(path).read_bytes()
            found = self._send(
                chat_id, message or "", image=image, response_to=reply_to_message_id or ""
            )
        return found

    def send_bridged_message(
        self,
        chat_id: str,
        message: str,
        name: str | None = None,
        username: str | None = None,
        user_id: str | None = None,
        message_id: str | None = None,
        reply_to_message_id: str | None = None,
        image_url: str | None = None,
    ) -> str:
        """Bring a message from another network."""
        bridged = BridgeMessage(
            bridge_name=name or "Unknown",
            user_name=username or "Anon",
            content=message,
            user_avatar=image_url or "",
            user_id=user_id or "",
            message_id=message_id or "",
            parent_message_id=reply_to_message_id or "",
        )
        return self._send(chat_id, "", bridged=bridged)

    def send_emoji_reaction(
        self, message_id: str, emoji_shortname: str, chat_id: str | None = None
    ) -> None:
        """React to a message.

        Raises:
            KeyError: the protocol has no such reaction, or the message's chat is not known.
        """
        reaction = REACTIONS[emoji_shortname.strip(":")]
        self.wait(self._channel(chat_id or self._chats[message_id]).react, message_id, reaction)

    def delete_message(self, id: str, chat_id: str | None = None) -> bool:
        """Delete a message; clients obey if it is the bot's, or the bot a moderator.

        Raises:
            KeyError: the message's chat is not known.
        """
        self.wait(self._channel(chat_id or self._chats[id]).delete, id)
        return True

    # -- listening --------------------------------------------------------------------------------

    def listen_events(self) -> Iterator[tuple[Event, Payload]]:
        """What happens from now on, until `logout`."""
        listener: Listener = Queue(MAX_WAITING)
        with self._lock:
            self._listeners.append(listener)
        return self._events(listener)

    def _events(self, listener: Listener) -> Iterator[tuple[Event, Payload]]:
        try:
            while (found := listener.get()) is not None:
                yield found
        finally:
            with self._lock:
                self._listeners.remove(listener)

    def listen_messages(
        self, content: Content | Iterable[Content] | None = None
    ) -> Iterator[Message]:
        """Messages of others that do not mention the bot."""
        wanted = [content] if isinstance(content, Content) else list(content or Content)
        events = self.listen_events()
        return (
            payload
            for event, payload in events
            if event is Event.MESSAGE
            and isinstance(payload, Message)
            and payload.content_type in wanted
        )

    def listen_message_mentions(self) -> Iterator[Message]:
        """Messages of others that mention the bot."""
        events = self.listen_events()
        return (p for event, p in events if event is Event.MENTION and isinstance(p, Message))

    def listen_contact_requests(self) -> Iterator[ContactRequest]:
        """Contact requests, and what became of the bot's."""
        return (p for _, p in self.listen_events() if isinstance(p, ContactRequest))

    # -- in the bot's thread ----------------------------------------------------------------------

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call something of the bot in its thread.

        Raises:
            NotLoggedIn: the account does not run.
        """
        if self._portal is None:
            raise NotLoggedIn("call account.login() first")
        return self._portal.call(function, *arguments)

    def wait(self, function: Callable[..., Awaitable[T]], *arguments: Any, **named: Any) -> T:
        """Await something of the bot in its thread.

        Raises:
            NotLoggedIn: the account does not run.
        """

        async def awaited() -> T:
            return await function(*arguments, **named)

        if self._portal is None:
            raise NotLoggedIn("call account.login() first")
        return self._portal.call(awaited)

    def _channel(self, chat_id: str) -> BotChannel:
        return self.call(self.bot.channel, chat_id)

    def _send(self, chat_id: str, text: str, **more: Any) -> str:
        channel = self._channel(chat_id)
        message_id: str = self.wait(channel.send, text, **more)
        self._chats.renew(message_id, channel.room.chat_id)
        return message_id

    async def _message(self, message: BotMessage) -> None:
        self._chats.renew(message.message_id, message.room.chat_id)
        if (found := Message.of(message)) is not None:
            is_mention = self.bot.public_key in message.mentions
            self._emit(Event.MENTION if is_mention else Event.MESSAGE, found)

    async def _contact_request(self, request: BotContactRequest) -> None:
        self._requests.renew(request.message_id, request)
        self._emit(Event.CONTACT_REQUEST, ContactRequest.of(request))

    async def _contact_change(self, change: ContactChange) -> None:
        self._emit(Event.CONTACT_REQUEST, ContactRequest.of(change))

    async def _join_request(self, request: JoinRequest) -> None:
        community_id = self.bot.owned.community.id
        self._emit(Event.COMMUNITY_REQUEST, CommunityRequest.of(request, community_id))

    def _emit(self, event: Event, payload: Payload) -> None:
        with self._lock:
            for listener in self._listeners:
                self._put(listener, (event, payload))

    def _put(self, listener: Listener, found: tuple[Event, Payload] | None) -> None:
        """Give something to a listener that may have fallen behind."""
        while True:
            try:
                listener.put_nowait(found)
            except Full:
                try:
                    listener.get_nowait()
                    self.missed += 1
                except Empty:  # it was taken just now
                    continue
            else:
                return

    async def _has_started(self) -> None:
        self._started.set()

    def _has_ended(self, _: "Future[None]") -> None:
        self._started.set()
        with self._lock:
            for listener in self._listeners:
                self._put(listener, None)
