"""The names of `status-sdk` over bots: in threads, through a real node, in real time."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
from anyio.abc import TaskStatus
from anyio.from_thread import start_blocking_portal
from status_world import COMMUNITY

from reliable_channel_status import (
    Access,
    CommunityProfile,
    PrivateKey,
    PublicKey,
    mention,
    write_key,
)
from reliable_channel_status.bot import BotOptions, RateLimit, StatusBot
from reliable_channel_status.key_file import KeyFileError
from reliable_channel_status.status_sdk import (
    Account,
    Chat,
    Community,
    Content,
    Event,
    GroupChat,
    NotLoggedIn,
)
from reliable_channel_status.status_sdk import account as account_module
from waku.node import EmbeddedNode, NodeOptions, serve_node

T = TypeVar("T")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    async def serve(*, task_status: TaskStatus[str]) -> None:
        options = NodeOptions(cluster_id=16, shards=(32, 64), static_sharding=True)
        async with EmbeddedNode(options) as embedded:
            await serve_node(embedded, port=0, started=task_status.started)

    with start_blocking_portal() as portal:
        served, url = portal.start_task(serve)
        yield url
        served.cancel()


def until(found: Callable[[], T]) -> T:
    """What a function returns once it is true."""
    while not (value := found()):
        threading.Event().wait(0.02)
    return value


class People:
    """An owner, whose bot runs a community, and members."""

    def __init__(self, node: str, folder: Path) -> None:
        self.node, self.folder = node, folder
        self.stack = ExitStack()

    def account(self, name: str, **arguments: Any) -> Account:
        key = self.folder / f"{name}.key"
        write_key(key, PrivateKey.generate())
        many = RateLimit(1000, 1000)
        options = BotOptions(
            display_name=name, poll_ms=20, user_limit=many, channel_limit=many, confirm_ms=0
        )
        bot = StatusBot(node=self.node, key_file=key, options=options, state=None, **arguments)
        return Account(bot)

    def owner(self, access: Access = Access.AUTO_ACCEPT) -> Account:
        key = self.folder / "community.key"
        write_key(key, PrivateKey.generate())
        account = self.account("owner", community_key_file=key)

        @account.bot.task
        async def found() -> None:
            profile = CommunityProfile(name="Tea", description="About tea", access=access)
            await account.bot.owned.found(profile)
            await account.bot.owned.add_channel("general", "For all")

        return self.stack.enter_context(account)

    def member(self, name: str, community_id: str) -> tuple[Account, Community]:
        account = self.stack.enter_context(self.account(name, community=community_id))
        community = Community(account, community_id)
        return account, community


@pytest.fixture
def people(node: str, tmp_path: Path) -> Iterator[People]:
    found = People(node, tmp_path)
    with found.stack:
        yield found


def test_a_community_is_run_and_spoken_in(people: People, tmp_path: Path) -> None:
    owner = people.owner()
    own = Community(owner, next(iter(owner.bot.rooms.communities)).id)
    until(lambda: own.account.call(owner.bot.description, own._community))
    until(lambda: own.channels)
    listener = owner.listen_events()
    alice, community = people.member("alice", own.id)
    until(lambda: community.is_member and community.channels)
    assert (own.name, community.name, len(community)) == ("Tea", "Tea", 2)
    assert alice.info["public_key"] in own.get_members()
    general = community["general"]
    first = general.send_message("hello")
    message = message_of(listener)
    assert message.id == first
    assert (message.text, message.chat_id) == ("hello", general.id)
    assert (message.chat_type, message.content_type) == (Chat.COMMUNITY, Content.TEXT)
    assert message.from_public_key == alice.info["public_key"] and message.source == "status"

    heard = alice.listen_messages()
    mentioned = alice.listen_message_mentions()
    owner.send_emoji_reaction(first, ":thumbsup:")
    owner.send_message(general.id, "welcome", first)
    answer = next(heard)
    assert (answer.text, answer.reply_id) == ("welcome", first)
    owner.send_message(general.id, f"{mention(PublicKey.parse(alice.info['public_key']))} tea?")
    assert "tea?" in str(next(mentioned).text)
    picture = tmp_path / "tea.png"
    picture.write_bytes(PNG)
    own["general"].send_image(str(picture), "a cup")
    bridged = own["general"].send_bridged_message("hi", name="irc", username="ann", message_id="7")
    images = alice.listen_messages(Content.IMAGE)
    image = next(one for one in heard if one.content_type is Content.IMAGE)
    assert (image.image, image.text) == (PNG, "a cup") and images
    brought = next(one for one in heard if one.content_type is Content.BRIDGED)
    assert (brought.id, brought.source, brought.text, brought.bridge_id) == (
        bridged,
        "irc",
        "hi",
        "7",
    )
    assert own["general"].delete_message(bridged)
    with pytest.raises(KeyError):
        alice.send_emoji_reaction("0xunknown", ":heart:")
    with pytest.raises(KeyError):
        community["nowhere"]
    with pytest.raises(ValueError, match="community_key_file"):
        community.kick(owner.info["public_key"])
    own.create_channel("more", "Others")
    until(lambda: {one["name"] for one in community.channels} == {"general", "more"})
    own.delete_channel("more")
    own.ban(alice.info["public_key"])
    until(lambda: not community.is_member)
    own.unban(alice.info["public_key"])


def test_requests_to_join_are_accepted(people: People) -> None:
    owner = people.owner(Access.MANUAL_ACCEPT)
    own = Community(owner, next(iter(owner.bot.rooms.communities)).id)
    until(lambda: own.account.call(owner.bot.description, own._community))
    requests = own.listen_requests()
    alice, community = people.member("alice", own.id)
    request = next(requests)
    assert (request.public_key, request.community_id) == (alice.info["public_key"], own.id)
    assert not community.is_member and request.pending
    own.accept(request.id)
    until(lambda: community.is_member)
    own.kick(request.public_key)
    until(lambda: not community.is_member)


def test_contacts_messages_and_groups(people: People) -> None:
    alice = people.stack.enter_context(people.account("alice"))
    bob = people.stack.enter_context(people.account("bob"))
    requests, answers = bob.listen_contact_requests(), alice.listen_contact_requests()
    alice.add_contact(bob.info["public_key"], text="tea?")
    request = next(requests)
    assert request.incoming and request.text == "tea?"
    bob.add_contact(request.public_key, request.id)
    assert next(answers).accepted
    assert bob.info["public_key"] in alice.contacts
    heard = bob.listen_messages()
    alice.send_message(bob.info["public_key"], "hello Bob")
    message = next(heard)
    assert (message.text, message.chat_type) == ("hello Bob", Chat.PRIVATE)
    group = GroupChat(alice)
    with pytest.raises(ValueError, match="create"):
        _ = group.id
    group.create(bob.info["public_key"], "tea")
    until(lambda: bob.call(lambda: bob.bot.groups))
    same = GroupChat(bob, group.id)
    assert (same.name, same.is_admin, group.is_admin) == ("tea", False, True)
    group.send_message("in a group")
    message = next(heard)
    assert (message.text, message.chat_type, message.chat_id) == (
        "in a group",
        Chat.GROUP,
        group.id,
    )
    group.name = "coffee"
    until(lambda: same.name == "coffee")
    group.remove(bob.info["public_key"])
    until(lambda: not bob.call(lambda: bob.bot.groups))
    assert list(group.members) == [alice.info["public_key"]]
    assert alice.remove_contact(bob.info["public_key"])
    assert next(requests).removed


def test_logging_in_and_out(people: People) -> None:
    account = people.account("alice")
    with pytest.raises(NotLoggedIn):
        _ = account.info
    with account:
        assert account.login() is account and account.display_name == "alice"
        listener = account.listen_events()
    assert list(listener) == [], "it ends with the account"
    with account:
        assert account.info["public_key"].startswith("0x04")
    (people.folder / "alice.key").write_text("no key")
    with pytest.raises(KeyFileError):
        account.login()
    with people.account("bob") as bob, pytest.raises(ValueError, match="not in"):
        Community(bob, COMMUNITY.id)


def test_a_listener_that_falls_behind_loses_the_oldest(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_module, "MAX_WAITING", 3)
    alice = people.stack.enter_context(people.account("alice"))
    bob = people.stack.enter_context(people.account("bob"))
    heard = bob.listen_messages()
    for n in range(6):
        alice.send_message(bob.info["public_key"], f"message {n}")
    until(lambda: bob.missed == 3)
    assert [next(heard).text for _ in range(3)] == [f"message {n}" for n in (3, 4, 5)]


def message_of(listener: Iterator[tuple[Event, Any]]) -> Any:
    """The next message."""
    return next(payload for event, payload in listener if event is Event.MESSAGE)


def test_the_program_of_the_page_serves(people: People) -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "from-status-sdk.md"
    snippet = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(compile(snippet, page.name, "exec"), names)
    account = people.account("ping")
    alice = people.stack.enter_context(people.account("alice"))
    with account:
        # The listener is there before the thread runs on.
        listener = account.listen_events()
        account.listen_events = lambda: listener  # type: ignore[method-assign]
        serving = threading.Thread(target=names["serve"], args=[account])
        serving.start()
        answers, heard = alice.listen_contact_requests(), alice.listen_messages()
        alice.add_contact(account.info["public_key"])
        assert next(answers).accepted
        asked = alice.send_message(account.info["public_key"], "!ping")
        answer = next(heard)
        assert (answer.text, answer.reply_id) == ("pong", asked)
    serving.join()
