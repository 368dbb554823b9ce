"""docs/light-client.md runs, against the scripted peer on a real socket."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.waku.libp2p.pair import LISTENER
from waku import errors, message_hash
from waku.libp2p import Multiaddr
from waku.libp2p.driver import Host
from waku.p2p import ClientEvent, codec
from waku.p2p import waku_libp2p_pb2 as pb

from .service import Service

pytestmark = pytest.mark.anyio

PAGE = (Path(__file__).parents[3] / "docs" / "light-client.md").read_text()


def program(text: str) -> str:
    """The example of the page that contains a text."""
    snippets = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (found,) = (each for each in snippets if text in each)
    return str(found)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_the_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    snippet = program("LightClient(")
    service = Service()
    service.metadata = codec.Metadata(16, frozenset({32}))
    service.push_back = True
    service.store_answer = lambda request: pb.StoreQueryResponse(
        request_id=request.request_id,
        status_code=200,
        messages=[
            pb.WakuMessageKeyValue(
                message_hash=message_hash(push.pubsub_topic, codec.from_proto(push.message)),
                message=push.message,
                pubsub_topic=push.pubsub_topic,
            )
            for push in service.asked[:1]
        ],
    )
    async with Host(LISTENER, handlers=service.handlers) as host:
        address = await host.listen(Multiaddr.parse("/ip4/127.0.0.1/tcp/0/ws"))
        names: dict[str, Any] = {"SERVICE_PEER": str(address)}
        exec(compile(snippet, "docs/light-client.md", "exec"), names)
        await names["main"]()
    printed = re.findall(r"print\(.*\)  # (.*)", snippet)
    assert capsys.readouterr().out.splitlines() == printed


async def test_the_example_of_the_relay_leaf_prints_what_it_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    snippet = program("RelayLeaf(")
    names: dict[str, Any] = {}
    exec(compile(snippet, "docs/light-client.md", "exec"), names)
    await names["main"]()
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (.*)", snippet)


def test_every_error_that_is_named_exists() -> None:
    table = PAGE.split("## Refusals")[1].split("## What is missing")[0]
    named = re.findall(r"^\|[^|]+\| `(\w+)`", table, re.MULTILINE)
    assert len(named) >= 5
    assert set(named) <= set(errors.__all__)


def test_every_event_is_named() -> None:
    for kind in get_args(ClientEvent):
        assert f"`{kind.__name__}`" in PAGE
