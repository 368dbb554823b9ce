"""What is taken for a user, and what stays readable."""

import base64
import re

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.asgi import app_of
from waku import WakuClient
from waku._userinfo import masked_address, masked_text

SAME = [
    "http://127.0.0.1:8645",
    "http://host/a@b",
    "http://host:80/a@b",
    "/dns4/host/tcp/443/wss",
    "enrtree://AKEY@example.org",
    "libp2p://enrtree://AKEY@example.org",
    "libp2p:///dns4/host/tcp/443,enrtree://AKEY@example.org",
    "sqlite:////home/a@b/state.db",
    "memory://a",
]


@pytest.mark.parametrize("address", SAME)
def test_what_has_no_user_stays(address: str) -> None:
    assert masked_address(address) == masked_text(address) == address
    assert masked_text(f"`node` (got {address!r})") == f"`node` (got {address!r})"


@pytest.mark.parametrize(
    ("address", "masked"),
    [
        ("http://:a@host:1", "http://***@host:1"),
        ("http://user:a@host/p", "http://***@host/p"),
        ("HTTP://user@[::1]:1", "HTTP://***@[::1]:1"),
        ("http://:a/b+c=@host", "http://***@host"),
        ("http://:a@b@host", "http://***@host"),
        ("http://***@host", "http://***@host"),
    ],
)
def test_a_user_does_not(address: str, masked: str) -> None:
    assert masked_address(address) == masked_text(address) == masked
    assert masked_text(f'{{"a":"{address}","b":"c@d"}}') == f'{{"a":"{masked}","b":"c@d"}}'


@pytest.mark.parametrize(
    ("address", "masked"),
    [
        (":a@host", "***@host"),
        ("user:a@host", "***@host"),
        ("a@host", "***@host"),
        ('http://:a "b@host', "http://***@host"),
        ("http:///:a@host", "http://***@host"),
    ],
)
def test_nor_does_one_in_an_address_that_is_malformed(address: str, masked: str) -> None:
    assert masked_address(address) == masked


NONE = r"/(?![^/@]*:[^@]*@)|[\w.-]+(?::\d+)?/"
SIMPLE = re.compile(rf"(?<!enrtree)(?<!libp2p)://(?!{NONE})[^\s\"'<>]*@")
"""What is masked in a text, in one expression that reads long texts once for each `://`."""
PIECES = ["://", "http://", "enrtree", "libp2p", "/", ":", "@", "a", "-", "1", " ", '"', "<", "\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_a_text_is_masked_as_the_simple_expression_says(text: str) -> None:
    assert masked_text(text) == SIMPLE.sub("://***@", text)


@pytest.mark.parametrize("piece", ["://", ":///", "://a/", "://a:1/", ":", "/:", "a", "1", "@"])
def test_a_hostile_text_of_a_megabyte_is_read_through(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    for end in ("", "@", " http://token@host"):
        assert "token" not in masked_text(text + end)


@pytest.mark.anyio
async def test_the_token_goes_to_the_node_in_a_header_alone() -> None:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, text="v1")

    url = "http://us%65r:to%40ken@node:1/path"
    async with WakuClient(url, app=app_of(answer)) as client:
        assert await client.version() == "v1"
    (request,) = requests
    assert str(request.url) == "http://node:1/path/debug/v1/version"
    encoded = base64.b64encode(b"user:to@ken").decode()
    assert request.headers["Authorization"] == f"Basic {encoded}"
