"""Each of examples/status_bots runs among people."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import anyio
import httpx
import pytest

from reliable_channel.spi import MemoryStateStore
from reliable_channel_status import (
    DEFAULT_SHARD,
    BridgeMessage,
    ChatMessage,
    DeleteMessage,
    Opener,
    Reaction,
    Received,
)
from reliable_channel_status.bot import BotContext, BotMemory
from reliable_channel_status.testing import BotTester
from status_tests.world import ALICE, COMMUNITY, GENERAL, OTHER
from waku import StoreQuery, WakuClient
from waku.node import EmbeddedNode, NodeOptions

EXAMPLES = Path(__file__).parents[3] / "examples" / "status_bots"
NODE = "http://node"


def example(name: str) -> Any:
    return SimpleNamespace(**run_path(str(EXAMPLES / f"{name}.py")))


def test_moderation() -> None:
    bot = example("moderation").make_bot(NODE, COMMUNITY.id, OTHER, ["status.app"])
    with BotTester(bot) as tester:
        alice, mallory = tester.user("Alice"), tester.user("Mallory")

        def deleted() -> list[str]:
            return [
                r.payload.message_id for r in tester.heard if isinstance(r.payload, DeleteMessage)
            ]

        alice.says("see https://status.app/c and https://our.status.app./x", channel=GENERAL)
        assert deleted() == [] and tester.said() == []
        bad = mallory.says("see https://status.app@evil.example/x", channel=GENERAL)
        assert deleted() == [bad]
        flood = [mallory.says(f"spam {n}", channel=GENERAL, settle=False) for n in range(7)]
        tester.wait()
        assert deleted() == [bad, *flood[5:]], "the link counts too"
        answer = alice.asks("!report he floods", channel=GENERAL, to=flood[0])
        assert answer == "Thank you; the moderators read it."
        reports = [message.text for message in tester.said(OTHER)]
        assert reports[0].startswith("link to evil.example: @0x04")
        assert reports[-1].startswith(f"report about {flood[0]}: @{alice.public_key.hex}")
        assert len(reports) == 1 + 2 + 1
        mallory.says("http://fine.example among moderators", channel=OTHER)
        assert len(deleted()) == 3


FEED = """<rss version="2.0"><channel><title>News &amp; more</title>
<item><title>Second</title><link>https://x.example/2</link><guid>g2</guid></item>
<item><title>First</title><link>https://x.example/1</link></item>
<item><title>Nothing to know it by</title></item>
</channel></rss>"""


def test_bridge(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    feed = tmp_path / "feed.xml"
    feed.write_text(FEED)
    bot = example("bridge").make_bot(NODE, COMMUNITY.id, GENERAL, feed)
    with BotTester(bot) as tester:
        tester.wait(300)
        tester.crash()
        tester.start()
        bridged = [message.bridge_message for message in tester.said()]
        assert [(b.user_name, b.content, b.message_id) for b in bridged if b] == [
            ("News & more", "First\nhttps://x.example/1", "https://x.example/1"),
            ("News & more", "Second\nhttps://x.example/2", "g2"),
        ]
        for broken in ("", "<rss/>", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "x" * 5_000_001):
            feed.write_text(broken)
            tester.wait(60)
        assert caplog.text.count("handler_failed handler='make_bot.<locals>.bring'") == 4
        feed.write_text(FEED.replace("g2", "g3"))
        tester.wait(60)
        assert len(tester.said()) == 3, "it goes on when the file is right again"


SECRET = b"a secret of the hook"
HEADERS = {"Authorization": "Bearer " + SECRET.decode()}


@asynccontextmanager
async def webhook(node: EmbeddedNode, store: MemoryStateStore) -> AsyncIterator[httpx.AsyncClient]:
    """The example as a process would run it, but for the node, which is in this one."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    bot = example("webhook").make_bot(NODE, COMMUNITY.id, GENERAL, SECRET, listener)
    memory = BotMemory(store, ALICE.public_key, now_ms())
    async with (
        WakuClient(NODE, app=node.app) as client,
        httpx.AsyncClient(base_url=url, headers=HEADERS, timeout=None) as sender,
        anyio.create_task_group() as tasks,
    ):
        around = BotContext(key=ALICE, memory=memory, client=client, now_ms=now_ms)
        tasks.start_soon(bot.serve, around)
        yield sender
        bot.stop()
    memory.close()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def hook(**fields: Any) -> dict[str, Any]:
    return {"id": "build 7", "user": "CI", "text": "main is rød"} | fields


def test_webhook() -> None:
    async def main() -> list[BridgeMessage | None]:
        store = MemoryStateStore()
        options = NodeOptions(cluster_id=16, shards=(32, 64), static_sharding=True)
        async with EmbeddedNode(options) as node:
            async with webhook(node, store) as sender:
                for request, status in WRONG:
                    answer = await sender.request(**{"method": "POST", "url": "/"} | request)
                    assert (answer.status_code, bool(answer.text)) == (status, True), request
                    assert SECRET.decode() not in answer.text
                for number in (7, 8, 7):
                    answer = await sender.post("/", json=hook(id=f"build {number}"))
                    assert answer.status_code == 204
            async with webhook(node, store) as sender:
                answer = await sender.post("/", json=hook())
                assert answer.status_code == 204, "the sender may not know that it was taken"
            async with WakuClient(NODE, app=node.app) as client:
                opener, topic = Opener([COMMUNITY.universal_topic]), COMMUNITY.universal_topic
                query = StoreQuery(
                    content_topics=(topic.content_topic,), pubsub_topic=str(DEFAULT_SHARD)
                )
                return [
                    outcome.payload.bridge_message
                    async for entry in client.store_all(query)
                    if entry.message is not None
                    for outcome in opener.receive(entry.message, now_ms())
                    if isinstance(outcome, Received) and isinstance(outcome.payload, ChatMessage)
                ]

    said = asyncio.run(main())
    assert sorted(message.message_id for message in said if message) == ["build 7", "build 8"]
    assert {(m.bridge_name, m.user_name, m.content) for m in said if m} == {
        ("webhook", "CI", "main is rød")
    }


WRONG: list[tuple[dict[str, Any], int]] = [
    ({"json": hook(), "headers": {"Authorization": "Bearer guessed"}}, 401),
    ({"json": hook(), "headers": {"Authorization": ""}}, 401),
    ({"method": "GET"}, 405),
    ({"content": b"no json"}, 400),
    ({"content": b"[" * 15_000}, 400),
    ({"json": ["a list"]}, 400),
    ({"json": hook(text=" ")}, 400),
    ({"json": hook(id=7)}, 400),
    ({"json": hook(user="x" * 61)}, 400),
    ({"content": json.dumps(hook(text="\ud800"))}, 400),
    ({"content": b" " * 16_001}, 413),
]


def test_the_secret_of_the_webhook_is_kept(tmp_path: Path) -> None:
    read_secret, file = example("webhook").read_secret, tmp_path / "hook.secret"
    file.write_bytes(SECRET + b"\n")
    file.chmod(0o644)
    with pytest.raises(ValueError, match="chmod 600"):
        read_secret(file)
    file.chmod(0o600)
    assert read_secret(file) == SECRET
    file.write_bytes(b"short\n")
    with pytest.raises(ValueError, match="less than 16 bytes"):
        read_secret(file)


def test_polls(tmp_path: Path) -> None:
    bot = example("polls").make_bot(NODE, COMMUNITY.id, tmp_path)
    with BotTester(bot) as tester:
        users = [tester.user(name) for name in ("Alice", "Bob", "Carol")]
        assert users[0].asks('!poll "Tea?" yes', channel=GENERAL) == "Give two to 6 choices."
        users[0].says('!poll "Tea or <coffee>?" tea "black coffee"', channel=GENERAL)
        assert tester.said()[-1].text == "Tea or <coffee>?\n❤️ tea\n👍 black coffee"
        poll = tester.heard[-1].message_id
        for user in users:
            user.reacts(poll, Reaction.LOVE, channel=GENERAL)
        users[1].reacts(poll, Reaction.LOVE, retracted=True, channel=GENERAL)
        users[1].reacts(poll, Reaction.THUMBS_UP, channel=GENERAL)
        users[1].reacts(poll, Reaction.SAD, channel=GENERAL)
        tester.crash()
        tester.start()
        told = users[2].asks("!result", channel=GENERAL, to=poll)
        assert told == "tea: 2\nblack coffee: 1"
        assert "Answer the poll" in users[2].asks("!result", channel=GENERAL)
    picture = ElementTree.fromstring((tmp_path / f"{poll}.svg").read_text())
    texts = ["".join(text.itertext()) for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["Tea or <coffee>?", "tea", "2", "black coffee", "1"]


def test_archive(tmp_path: Path) -> None:
    bot = example("archive").make_bot(NODE, COMMUNITY.id, tmp_path)
    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        said = alice.says("hällo", channel=GENERAL)
        alice.edits(said, "hallo", channel=GENERAL)
        alice.reacts(said, Reaction.SAD, channel=GENERAL)
        tester.crash()
        alice.deletes(said, channel=GENERAL)
        tester.wait(86_400)
        tester.start()
        alice.says("tomorrow", channel=OTHER)
    files = sorted(tmp_path.glob("*/*"))
    assert [file.parent.name for file in files] == ["date=2023-11-14", "date=2023-11-15"]
    first, second = ([json.loads(text) for text in file.read_text().splitlines()] for file in files)
    assert [(row["type"], row["text"], row["value"]) for row in first] == [
        ("ChatMessage", "hällo", "TEXT_PLAIN"),
        ("EditMessage", "hallo", None),
        ("EmojiReaction", None, "+SAD"),
        ("DeleteMessage", None, None),
    ]
    assert {row["about"] for row in first[1:]} == {said} == {first[0]["message_id"]}
    assert second[0]["chat_id"] == COMMUNITY.channel_id(OTHER)
    assert second[0]["author"] == alice.public_key.hex


def test_agent() -> None:
    asked: list[str] = []

    async def think(incoming: Any) -> str:
        asked.append(incoming.text)
        await anyio.sleep(120)  # a slow model
        return "x" * 9_000 if incoming.text == "long" else f"about {incoming.text}"

    bot = example("agent").make_bot(NODE, COMMUNITY.id, think)
    with BotTester(bot) as tester:
        alice, bob = tester.user("Alice"), tester.user("Bob")
        alice.says("nobody is asked", channel=GENERAL)
        mentioned = bob.says(f"@{tester.public_key.hex} tea", channel=GENERAL)
        alice.direct.says("first")
        alice.direct.says("second")
        tester.wait(500)
        assert len(asked) == 3 and sorted(asked[1:]) == ["first", "second"]
        assert tester.answers(mentioned)[0].startswith("about @")
        assert sorted(alice.direct.texts) == ["about first", "about second"]
        alice.direct.says("cut off")
        tester.wait(60)
        tester.crash()
        tester.bot = example("agent").make_bot(NODE, COMMUNITY.id, think)
        tester.start()
        alice.direct.says("long")
        tester.wait(500)
        assert asked.count("cut off") == 2, "it is asked again after the crash"
        assert alice.direct.texts.count("about cut off") == 1
        assert [len(t) for t in alice.direct.texts if t.startswith("x")] == [4_000, 4_000, 1_000]


def test_agent_without_a_framework() -> None:
    with BotTester(example("agent").make_bot(NODE, COMMUNITY.id)) as tester:
        asked = tester.user("Alice").says(f"@{tester.public_key.hex} two words", channel=GENERAL)
        assert tester.answers(asked) == ["Alice, you wrote 3 words."]
