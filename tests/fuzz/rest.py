"""The embedded node asked over HTTP what its own OpenAPI description allows, and what it does not:
`python -m tests.fuzz.rest SECONDS`.

Whatever is asked, the answer is one that the description names for it, in status, type and form.
Server errors are no exception: nwaku has some (500 for a cursor that it does not know, 505 for a
topic without peers), the node has them too, and the description says so. One that it does not name,
or an exception in the node, is a finding.
"""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from queue import SimpleQueue
from random import shuffle
from typing import Any, Final, TypeAlias

import anyio
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.core.result import Err
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from waku import WakuMessage
from waku.node import EmbeddedNode, NodeOptions, serve_node

Operation: TypeAlias = APIOperation[Any, Any, Any, Any]
MODES: Final = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
CONFORMS: Final = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ROUND_EXAMPLES: Final = 20
MESSAGE: Final = WakuMessage(b"hello", "/app/1/chat/proto", timestamp=1, meta=b"meta")
NODES: Final = {
    "serves all": NodeOptions(max_clients=64, store_capacity=1_000),
    "serves nothing": NodeOptions(
        relay=False,
        filter=False,
        store=False,
        lightpush=False,
        self_service=False,
        static_sharding=True,
        allow_origins=("https://app.example",),
    ),
}


class ServedNode(logging.Handler):
    """A node on a port of its own thread, and what went wrong inside it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.url = ""
        self.failures: list[str] = []
        self.requests = 0
        self._session = requests.Session()
        self._session.trust_env = False

    def emit(self, record: logging.LogRecord) -> None:
        """Note what uvicorn says of an exception that the node let out."""
        self.failures.append(self.format(record))

    def operations(self) -> list[Operation]:
        """All operations that the node describes.

        Raises:
            InvalidSchema: the description of one is none.
        """
        operations = []
        for found in schemathesis.openapi.from_url(f"{self.url}/openapi.json").get_all_operations():
            if isinstance(found, Err):
                raise found.err()
            operations.append(found.ok())
        return operations

    def ask(
        self,
        operation: Operation,
        mode: GenerationMode,
        *,
        examples: int,
        derandomize: bool = False,
    ) -> None:
        """Try one operation; raises where an answer is not as described."""

        @settings(
            max_examples=examples,
            derandomize=derandomize,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def conforms(case: schemathesis.Case[Any]) -> None:
            self.requests += 1
            response = case.call(base_url=self.url, session=self._session)
            assert not self.failures, self.failures
            case.validate_response(response, checks=CONFORMS)

        conforms()


@contextmanager
def serving(options: NodeOptions) -> Iterator[ServedNode]:
    """A running node, with a message in its store if it has one."""
    served, urls, stop = ServedNode(), SimpleQueue[str](), threading.Event()

    async def serve() -> None:
        async with EmbeddedNode(options) as node, anyio.create_task_group() as tasks:
            if options.store:
                node.publish(node.shard_for(MESSAGE.content_topic), MESSAGE)
            tasks.start_soon(lambda: serve_node(node, port=0, started=urls.put))
            await anyio.to_thread.run_sync(stop.wait)
            tasks.cancel_scope.cancel()

    logger, node_logger = logging.getLogger("uvicorn.error"), logging.getLogger("waku.node")
    level = node_logger.level  # one operation sets it
    logger.addHandler(served)
    thread = threading.Thread(target=anyio.run, args=(serve,), daemon=True)
    thread.start()
    try:
        served.url = urls.get(timeout=600)
        yield served
    finally:
        stop.set()
        thread.join(10)
        logger.removeHandler(served)
        node_logger.setLevel(level)


def _main(seconds: float) -> None:
    asked = 0
    for options in NODES.values():
        until = time.monotonic() + seconds / len(NODES)
        with serving(options) as served:
            tries = list(product(served.operations(), MODES))
            while time.monotonic() < until:
                shuffle(tries)  # a short time is not spent on the first operations alone
                for operation, mode in tries:
                    if time.monotonic() < until:
                        served.ask(operation, mode, examples=ROUND_EXAMPLES)
            asked += served.requests
    print(f"{asked} requests, all answered as described")


if __name__ == "__main__":
    _main(float(sys.argv[1]))
