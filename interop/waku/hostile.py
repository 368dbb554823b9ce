"""A program for containers that publishes any given bytes, as a hostile member would.

Its argument is the REST address of a node; `{"op":"publish","payload":<base64>,"topic":…}` puts the
bytes on the wire as a Waku message.
"""

import json
import sys
import time
from base64 import b64decode

import anyio

from waku import WakuClient, WakuMessage


async def main(node: str) -> None:
    async with WakuClient(node) as client:
        say(event="ready")
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            order = json.loads(line)
            payload = b64decode(order["payload"])
            message = WakuMessage(payload, order["topic"], timestamp=time.time_ns())
            await client.relay_auto_publish(message)
            say(event="published", ref=order["ref"])


def say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
