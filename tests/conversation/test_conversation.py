"""The verbs of channels through a hub, over a node."""

import anyio

from pytest_reliable_channel.nodes import served_node
from reliable_channel import ChannelHub, ReliableChannel, run


async def _answer(channel: ReliableChannel) -> None:
    async for question in channel.questions():
        await question.answer(question.content.upper())


def test_channels_of_a_hub_ask_and_answer() -> None:
    async def main(address: str) -> None:
        async with ChannelHub(address) as hub, ChannelHub(address) as other:
            alice = hub.channel(channel_id="c", sender_id="alice", preset="auto")
            bob = other.channel(channel_id="c", sender_id="bob", preset="auto")
            async with alice, bob, anyio.create_task_group() as tasks:
                tasks.start_soon(_answer, bob)
                answer = await alice.ask(b"hello", within_s=600)
                assert (answer.sender_id, answer.content) == ("bob", b"HELLO")
                await alice.send(b"one", wait="acknowledged", within_s=600)
                assert [one.sender_id for one in alice.participants()] == ["bob"]
                assert f"node={address}" in alice.invite()
                tasks.cancel_scope.cancel()

    with served_node() as address:
        run(main, address)
