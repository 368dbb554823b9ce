"""Publications become known at any moment, are fetched in any order and delivered in their own."""

from random import Random

import anyio
import anyio.lowlevel
import pytest

from reliable_channel_svs import Name
from reliable_channel_svs.events import PublicationsKnown
from reliable_channel_svs.ndn.events import PublicationReceived
from reliable_channel_svs.ndn.fetching import Fetcher, Outcome, Place
from reliable_channel_svs.ndn.options import NodeOptions

NODE = Name.parse("/alice")
BOOTSTRAP_TIME = 7


async def delivered(random: Random, count: int) -> list[int]:
    """The numbers that are delivered, in order, where each step takes a random while."""
    numbers: list[int] = []

    async def a_while() -> None:
        for _ in range(random.randrange(5)):
            await anyio.lowlevel.checkpoint()

    async def fetch(place: Place) -> bytes:
        await a_while()
        return b"%d" % place[2]

    async def deliver(outcome: Outcome) -> None:
        await a_while()
        assert isinstance(outcome, PublicationReceived)
        numbers.append(outcome.seq)

    async with anyio.create_task_group() as tasks:
        fetcher = Fetcher(tasks, fetch, deliver, NodeOptions(window=4))
        known = 0
        while known < count:
            first, known = known + 1, min(count, known + random.randint(1, 4))
            fetcher.want(PublicationsKnown(NODE, BOOTSTRAP_TIME, first, known))
            await a_while()
            await a_while()
    return numbers


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_publications_of_a_node_are_delivered_in_order_each_once(backend: str) -> None:
    for seed in range(40):
        found = anyio.run(delivered, Random(seed), 40, backend=backend)
        assert found == list(range(1, 41)), f"seed {seed}"
