"""Brings what a program sends by HTTP into a channel, each once, as messages of another network.

    (umask 077; openssl rand -hex 32 > hook.secret)
    python webhook.py http://127.0.0.1:8645 COMMUNITY CHANNEL hook.secret
    curl -H "Authorization: Bearer $(cat hook.secret)" -d \
        '{"id": "build 7", "user": "CI", "text": "main is red"}' http://127.0.0.1:8080/

204 says that it is written down and will be said; on any other answer send it again, with the same
id. It listens on 127.0.0.1: others come through a proxy that speaks TLS.
"""

import hmac
import json
import socket
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import uvicorn

from reliable_channel_status import BridgeMessage
from reliable_channel_status.bot import OutboxFull, StatusBot

MAX_BYTES = 16_000
MAX_CHARACTERS = {"id": 200, "user": 60, "text": 4000}
BODY_TIMEOUT_S = 10
MIN_SECRET_BYTES = 16

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Listener(uvicorn.Server):
    """uvicorn that leaves signals to the bot."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def read_secret(file: Path) -> bytes:
    """The secret of a file that only you may read."""
    secret = file.read_bytes().strip()
    if len(secret) < MIN_SECRET_BYTES:
        raise ValueError(f"{file} has less than {MIN_SECRET_BYTES} bytes: anybody could guess it")
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise ValueError(f"others may read {file}; run: chmod 600 {file}")
    return secret


async def read_body(receive: Receive) -> bytes:
    body = bytearray()
    try:
        with anyio.fail_after(BODY_TIMEOUT_S):
            while True:
                event = await receive()
                if event["type"] == "http.disconnect":
                    raise Refused(400, "the request broke off")
                body.extend(event.get("body", b""))
                if len(body) > MAX_BYTES:
                    raise Refused(413, f"a message has at most {MAX_BYTES} bytes")
                if not event.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        raise Refused(408, f"the request took longer than {BODY_TIMEOUT_S} s") from None


def read_item(body: bytes) -> BridgeMessage:
    try:
        item = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "this is no JSON") from None
    for name, most in MAX_CHARACTERS.items():
        value = item.get(name) if isinstance(item, dict) else None
        if not isinstance(value, str) or not 1 <= len(value.strip()) <= most:
            raise Refused(400, f"{name} must be a text of 1 to {most} characters")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Refused(400, f"{name} is no Unicode text") from None
    return BridgeMessage(
        bridge_name="webhook",
        user_name=item["user"].strip(),
        content=item["text"].strip(),
        message_id=item["id"].strip(),
    )


def make_bot(
    node: str, community: str, channel: str, secret: bytes, listener: socket.socket
) -> StatusBot:
    bot = StatusBot(node=node, community=community, channels=[channel])

    async def take(scope: Scope, receive: Receive) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"")
        if not hmac.compare_digest(given, b"Bearer " + secret):
            raise Refused(401, "the secret is missing or wrong")
        if scope["method"] != "POST":
            raise Refused(405, "POST a message")
        item = read_item(await read_body(receive))
        try:
            await bot.channel(channel).send(bridged=item, once=item.message_id)
        except OutboxFull as error:
            raise Refused(503, str(error)) from None

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        status, why = 204, ""
        try:
            await take(scope, receive)
        except Refused as refused:
            status, why = refused.status, str(refused)
        headers = [(b"connection", b"close")]  # what was not read of a body is no next request
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": why.encode()})

    @bot.task
    async def listen() -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            limit_concurrency=50,
            timeout_graceful_shutdown=5,
        )
        server = Listener(config)
        try:
            await server.serve(sockets=[listener])
        finally:
            with anyio.CancelScope(shield=True):
                await server.shutdown(sockets=[listener])

    return bot


if __name__ == "__main__":
    where = socket.create_server(("127.0.0.1", 8080))
    make_bot(sys.argv[1], sys.argv[2], sys.argv[3], read_secret(Path(sys.argv[4])), where).run()
