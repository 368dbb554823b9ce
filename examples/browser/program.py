"""Shares a channel with pages: an embedded node, a participant, and the page itself.

    npm ci && npm run build       # once, in this folder
    python program.py             # needs the extra [libp2p]

Open the address that it prints, in as many windows as you like. Nothing but this program lies
between them.
"""

import functools
import http.server
import sys
import threading
from pathlib import Path

from reliable_channel import MessageReceived, ReliableChannel, printable, run
from waku.node import EmbeddedNode

HERE = Path(__file__).parent
CHANNEL_ID = "browser"
CONTENT_TOPIC = "/reliable-channel/1/browser/proto"


class Pages(http.server.SimpleHTTPRequestHandler):
    """The folder with the page, without a line of the log for each request."""

    def log_message(self, *arguments: object) -> None:
        """Stay quiet."""


async def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    pages = functools.partial(Pages, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        async with EmbeddedNode(listen=["/ip4/127.0.0.1/tcp/0/ws"]) as node:
            (address,) = node.libp2p_addresses
            await take_part(address, f"http://127.0.0.1:{server.server_port}/#{address}")
        server.shutdown()


async def take_part(address: str, url: str) -> None:
    """Greet everyone that says something."""
    async with ReliableChannel(
        address, channel_id=CHANNEL_ID, sender_id="python", content_topic=CONTENT_TOPIC
    ) as channel:
        print(f"open {url}", flush=True)
        async for event in channel.events():
            if isinstance(event, MessageReceived):
                text = event.content.decode(errors="replace")
                print(printable(text), flush=True)
                await channel.send(f"python: I heard {text!r}".encode())


run(main)
