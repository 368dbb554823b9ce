"""Polls by reaction: `!poll "Tea or coffee?" tea coffee`, and `!result` as an answer to the poll.

    python polls.py http://127.0.0.1:8645 COMMUNITY results/

Each user has one vote a choice, as long as the reaction stands. `!result` also writes an SVG.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from reliable_channel_status import Reaction
from reliable_channel_status.bot import Message, ReactionChange, StatusBot

SIGNS = {
    Reaction.LOVE: "❤️",
    Reaction.THUMBS_UP: "👍",
    Reaction.THUMBS_DOWN: "👎",
    Reaction.LAUGH: "😂",
    Reaction.SAD: "😢",
    Reaction.ANGRY: "😡",
}


def svg(question: str, votes: dict[str, int]) -> str:
    """The result as horizontal bars, 600 pixels wide."""
    most = max([1, *votes.values()])
    lines = []
    for row, (choice, count) in enumerate(votes.items()):
        y, width = 50 + 40 * row, 330 * count / most
        lines += [
            f'<text x="150" y="{y + 19}" text-anchor="end">{escape(choice[:20])}</text>',
            f'<rect x="160" y="{y}" width="{width:.0f}" height="28" rx="4" fill="#4360df"/>',
            f'<text x="{170 + width:.0f}" y="{y + 19}">{count}</text>',
        ]
    height = 60 + 40 * len(votes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="600" height="{height}" '
        'font-family="sans-serif" font-size="14">\n'
        f'<rect width="600" height="{height}" fill="white"/>\n'
        f'<text x="20" y="30" font-size="17" font-weight="bold">{escape(question[:60])}</text>\n'
        + "\n".join(lines)
        + "\n</svg>\n"
    )


def make_bot(node: str, community: str, folder: Path) -> StatusBot:
    bot = StatusBot(node=node, community=community)

    def tally(poll: dict[str, Any]) -> dict[str, int]:
        counts = Counter(vote.split()[0] for vote in poll["votes"])
        return {choice: counts[str(number)] for number, choice in enumerate(poll["choices"])}

    def draw(poll_id: str, picture: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{poll_id}.svg").write_text(picture)

    @bot.command("poll")
    async def poll(message: Message, question: str, *choices: str) -> str | None:
        """Begins a poll; two to six choices."""
        if not 2 <= len(choices) <= len(SIGNS):
            return f"Give two to {len(SIGNS)} choices."
        rows = [f"{sign} {choice}" for sign, choice in zip(SIGNS.values(), choices, strict=False)]
        asked = await message.channel.send("\n".join([question, *rows]))
        if bot.note(asked) is None:
            bot.keep(asked, {"question": question, "choices": choices, "votes": []})
        return None

    @bot.on_reaction
    async def vote(change: ReactionChange) -> None:
        poll = bot.note(change.message_id)
        number = list(SIGNS).index(change.reaction) if change.reaction in SIGNS else len(SIGNS)
        if poll is None or number >= len(poll["choices"]):
            return
        one = f"{number} {change.author.hex}"
        votes = [v for v in poll["votes"] if v != one]
        bot.keep(change.message_id, {**poll, "votes": votes if change.retracted else [*votes, one]})

    @bot.command("result")
    async def result(message: Message) -> str:
        """Shows the result so far; answer the poll."""
        poll = bot.note(message.payload.response_to)
        if poll is None:
            return "Answer the poll with !result."
        votes = tally(poll)
        draw(message.payload.response_to, svg(poll["question"], votes))
        return "\n".join(f"{choice}: {count}" for choice, count in votes.items())

    return bot


if __name__ == "__main__":
    make_bot(sys.argv[1], sys.argv[2], Path(sys.argv[3])).run()
