"""Files of a new bot, its test and its instructions, as `reliable-channel bot new` writes them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..key_file import write_key
from ..wire.chats import Community
from ..wire.keys import PrivateKey, PublicKey

BOT: Final = '''"""A bot in a Status community. WAKU_NODE is a node of cluster 16."""

import os
from pathlib import Path

from reliable_channel_status import ChatMessage, PublicKey
from reliable_channel_status.bot import BotOptions, Message, StatusBot

bot = StatusBot(
    node=os.environ.get("WAKU_NODE", "http://127.0.0.1:8645"),
    key_file=Path(__file__).with_name("bot.key"),
    community="{community}",
    channels={channels},
    options=BotOptions(display_name={display_name}),
)


@bot.command("ping")
async def ping(message: ChatMessage) -> str:
    """Answers pong."""
    return "pong"


@bot.command("thank")
async def thank(message: Message, user: PublicKey, *, what: str = "everything") -> str:
    """Thanks a user, and counts."""
    thanks = (bot.note(user.hex) or 0) + 1
    bot.keep(user.hex, thanks)
    return f"Thank you, {{bot.name_of(user)}}, for {{what}}! ({{thanks}})"


if __name__ == "__main__":
    bot.run()
'''

TEST: Final = '''"""Runs the bot against an embedded node, with scripted users, in virtual time."""

from bot import bot

from reliable_channel_status import mention
from reliable_channel_status.testing import BotTester


def test_the_bot_answers_and_counts() -> None:
    with BotTester(bot) as tester:
        alice, bob = tester.user("Alice"), tester.user("Bob")
        assert alice.asks("!ping") == "pong"
        bob.says("hello")
        thanks = f"!thank {mention(bob.public_key)} the tea"
        assert alice.asks(thanks) == "Thank you, Bob, for the tea! (1)"
        tester.crash()
        tester.start()
        assert alice.asks(thanks) == "Thank you, Bob, for the tea! (2)"
'''

README: Final = """# {name}

    pip install reliable-channel reliable-channel-status pytest
    python -m pytest    # without any node
    python bot.py       # WAKU_NODE=http://127.0.0.1:8645: an nwaku or go-waku node of cluster 16

`reliable-channel node --cluster-id 16 --num-shards 65` is a node to try it with.

`bot.key` is the identity of the bot, `bot.db` its memory: keep both, and the first one secret.
"""

IGNORED: Final = "bot.key\nbot.db*\n"


class ProjectExists(ValueError):
    """Error that the folder of the new project exists already."""


def write_project(
    folder: Path, community: Community, channels: Sequence[str], passphrase: str | None = None
) -> PublicKey:
    """Write a project with a new key to a folder that is new or empty.

    Args:
        folder: its name becomes the bot's.
        community: where the bot will be.
        channels: uuids; empty for all.
        passphrase: encrypts the key.

    Returns:
        The bot's public key.

    Raises:
        ProjectExists: the folder is not empty.
        ValueError: a channel is not a uuid.
        OSError: it cannot be written.
    """
    for channel in channels:
        community.channel_id(channel)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ProjectExists(f"the folder {folder} is not empty; choose another name")
    folder.mkdir(parents=True, exist_ok=True)
    name = folder.resolve().name
    fields = {
        "community": community.id,
        "channels": json.dumps(channels) if channels else None,
        "display_name": json.dumps(name, ensure_ascii=False),
    }
    (folder / "bot.py").write_text(BOT.format(**fields))
    (folder / "test_bot.py").write_text(TEST)
    (folder / "README.md").write_text(README.format(name=name))
    (folder / ".gitignore").write_text(IGNORED)
    key = PrivateKey.generate()
    write_key(folder / "bot.key", key, passphrase)
    return key.public_key
