"""Real channels that write journals, in virtual time, and views of them."""

from pathlib import Path
from typing import Any

from pytest_reliable_channel.channels import Channels
from reliable_channel_watch.model import View
from reliable_channel_watch.reading import Follower, note

NAMES = ("alice", "bob", "carol")


async def talk(channels: Channels, folder: Path, *, loss: float = 0.0, messages: int = 5) -> None:
    """Three participants send by turns, until their logs are equal; each writes a journal."""
    participants = []
    for name in NAMES:
        options: dict[str, Any] = {"journal": folder / f"{name}.jsonl", "loss": loss, "seed": 7}
        participants += await channels.open(name, **options)
    for number in range(messages):
        for participant in participants:
            await participant.send(f"{number} of {participant.name}")
            await channels.sleep(0.5)
    await channels.agree()
    await channels.sleep(120)  # the last ones are acknowledged by sync messages
    for participant in participants:
        await participant.stop()


def view_of(folder: Path) -> View:
    """All that the journals of a folder have."""
    view = View()
    with Follower([folder]) as follower:
        for participant, line in follower.look():
            note(view, participant, line)
    return view
