"""A program for containers that measures their network: an echo by UDP, and what becomes of it.

Orders and answers are JSON lines: `{"op":"echo","to":…,"count":…,"interval_s":…}` is answered with
the round trips and the order in which they came back; `{"op":"connect","to":…}` with what a TCP
connection came to; `{"op":"heard"}` with the datagrams that others sent here.
"""

import json
import socket
import sys
from contextlib import suppress
from threading import Thread
from time import monotonic, sleep
from typing import Any, Final

PORT: Final = 7
WAIT_S: Final = 1.0
"""For answers that are late, and for connections."""


class Echo:
    def __init__(self) -> None:
        self.heard = 0
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("0.0.0.0", PORT))
        self._tcp = socket.create_server(("0.0.0.0", PORT))
        Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        while True:
            data, sender = self._udp.recvfrom(2048)
            self.heard += 1
            self._udp.sendto(data, sender)


def echo(to: str, count: int, interval_s: float) -> dict[str, Any]:
    """Send so many datagrams, and wait for the answers."""
    sent: dict[int, float] = {}
    order: list[int] = []
    trips_ms: list[float] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:

        def listen() -> None:
            link.settimeout(interval_s * count + WAIT_S)
            while len(order) < count:
                try:
                    number = int(link.recv(2048))
                except OSError:
                    return
                order.append(number)
                trips_ms.append(1000 * (monotonic() - sent[number]))

        link.bind(("0.0.0.0", 0))
        listener = Thread(target=listen, daemon=True)
        listener.start()
        for number in range(count):
            sent[number] = monotonic()
            with suppress(PermissionError):  # a sender gets an error for a cut of outgoing traffic
                link.sendto(b"%d" % number, (to, PORT))
            sleep(interval_s)
        listener.join(WAIT_S)
        return {"trips_ms": list(trips_ms), "order": list(order)}


def connect(to: str) -> str:
    """What a TCP connection comes to: `connected`, `refused` or `silence`."""
    try:
        socket.create_connection((to, PORT), timeout=WAIT_S).close()
    except TimeoutError:
        return "silence"
    except OSError as error:
        return "refused" if isinstance(error, ConnectionError) else str(error)
    return "connected"


def main() -> None:
    here = Echo()
    say(event="ready")
    for line in sys.stdin:
        order = json.loads(line)
        match order["op"]:
            case "echo":
                answer = echo(order["to"], order["count"], order["interval_s"])
            case "connect":
                answer = {"came_to": connect(order["to"])}
            case "heard":
                answer = {"heard": here.heard}
            case other:
                raise ValueError(f"unknown op {other!r}")
        say(event="answer", ref=order["ref"], **answer)


def say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    main()
