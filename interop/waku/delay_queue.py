"""`delay_queue.py QUEUE DELAY_MS JITTER_MS SEED`: holds the packets that the kernel queues here.

Speaks netlink's NFQUEUE protocol by itself (linux/netfilter/nfnetlink_queue.h): Python alone, in
the network namespace of another process. Ends when its standard input does.
"""

import heapq
import os
import random
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator
from errno import ENOBUFS
from typing import Final

NETLINK_NETFILTER: Final = 12
QUEUE_SUBSYSTEM: Final = 3 << 8
PACKET, VERDICT, CONFIG = 0, 1, 2
CFG_COMMAND, CFG_PARAMS, CFG_MAX_LENGTH = 1, 2, 3
BIND, COPY_META, ACCEPT = 1, 1, 1
PACKET_HEADER, VERDICT_HEADER = 1, 2
REQUEST, REQUEST_WITH_ANSWER = 1, 5
MAX_WAITING: Final = 65_536


def attribute(kind: int, payload: bytes) -> bytes:
    size = 4 + len(payload)
    return struct.pack("=HH", size, kind) + payload + b"\0" * (-size % 4)


def message(kind: int, queue: int, attributes: bytes, flags: int = REQUEST) -> bytes:
    body = struct.pack("!BBH", 0, 0, queue) + attributes
    return struct.pack("=IHHII", 16 + len(body), QUEUE_SUBSYSTEM | kind, flags, 0, 0) + body


def bind(link: socket.socket, queue: int) -> None:
    """Take the queue's packets, by description alone: what is in them does not matter here."""
    link.bind((0, 0))
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
    for setting in (
        attribute(CFG_COMMAND, struct.pack("!BBH", BIND, 0, socket.AF_INET)),
        attribute(CFG_PARAMS, struct.pack("!IB", 0, COPY_META)),
        attribute(CFG_MAX_LENGTH, struct.pack("!I", MAX_WAITING)),
    ):
        link.send(message(CONFIG, queue, setting, REQUEST_WITH_ANSWER))
        (error,) = struct.unpack_from("=i", link.recv(65_536), 16)
        if error:
            raise OSError(-error, os.strerror(-error))


def packets(data: bytes) -> Iterator[int]:
    """The ids of the packets that netlink reports."""
    at = 0
    while at + 16 <= len(data):
        size, kind = struct.unpack_from("=IH", data, at)
        if size < 16:
            return
        inner, end = at + 20, at + size
        while kind == QUEUE_SUBSYSTEM | PACKET and inner + 4 <= end:
            length, number = struct.unpack_from("=HH", data, inner)
            if length < 4:
                break
            if number & 0x3FFF == PACKET_HEADER:
                yield struct.unpack_from("!I", data, inner + 4)[0]
            inner += length + (-length % 4)
        at += size + (-size % 4)


def main(queue: int, delay_s: float, jitter_s: float, seed: int) -> None:
    draw = random.Random(seed)
    waiting: list[tuple[float, int]] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as link:
        bind(link, queue)
        print("ready", flush=True)
        while True:
            now = time.monotonic()
            while waiting and waiting[0][0] <= now:
                packet = heapq.heappop(waiting)[1]
                verdict = attribute(VERDICT_HEADER, struct.pack("!II", ACCEPT, packet))
                link.send(message(VERDICT, queue, verdict))
            timeout_s = max(0.0, waiting[0][0] - now) if waiting else None
            ready = select.select([link, sys.stdin], [], [], timeout_s)[0]
            if sys.stdin in ready:
                return
            if ready:
                try:
                    data = link.recv(1 << 20)
                except OSError as error:
                    if error.errno == ENOBUFS:  # the kernel had no room: those packets are lost
                        continue
                    raise
                at = time.monotonic()
                for packet in packets(data):
                    due = at + max(0.0, delay_s + draw.uniform(-jitter_s, jitter_s))
                    heapq.heappush(waiting, (due, packet))


if __name__ == "__main__":
    number, delay_ms, jitter_ms, seed = sys.argv[1:]
    main(int(number), float(delay_ms) / 1000, float(jitter_ms) / 1000, int(seed))
