"""Channels of people, whose state is kept where nobody has to name a place."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import typer

from ..channel import ReliableChannel
from ..errors import StateInUse
from .channel_flags import ChannelArguments
from .console import err

PERSONAL_STATE = (
    f"sqlite:///{typer.get_app_dir('reliable-channel')}/{{channel_id}}/{{sender_id}}.db"
)
"""Where people's channels are kept when they do not say."""


@asynccontextmanager
async def personal_channel(arguments: ChannelArguments) -> AsyncIterator[ReliableChannel]:
    """The channel that the flags describe, open, with state unless they say otherwise.

    The place nobody named belongs to the first of a person's commands; another one at the same time
    goes without, which is enough to say something.
    """
    channel = arguments.channel(default_state=PERSONAL_STATE)
    try:
        await channel.open()
    except StateInUse:
        if arguments.common["state"] is not None:
            raise
        err.print(
            f"{channel.sender_id} has this channel open in another command, which keeps its state; "
            "this one keeps none",
            style="dim",
            markup=False,
        )
        channel = arguments.channel()
        await channel.open()
    try:
        yield channel
    finally:
        await channel.aclose()
