"""Writes all that is said in a community's channels as JSON lines, a folder for each day (UTC).

    python archive.py http://127.0.0.1:8645 COMMUNITY archive/

    archive/date=2026-11-22/chat.jsonl

The folders are partitions as Spark reads them; archive_on_spark.py does. docs/status-bots.md lists
the columns. After a crash a line may stand there twice: message_id is its key.

With journals/ as a fourth argument it listens inside an SDS channel, whose journal the pipeline
judges: reliable-channel check journals/
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reliable_channel_status import (
    ChatMessage,
    ChatPayload,
    DeleteMessage,
    EditMessage,
    EmojiReaction,
    PinMessage,
    Received,
)
from reliable_channel_status.bot import BotOptions, StatusBot


def line(received: Received) -> dict[str, Any] | None:
    """The columns of what belongs to a chat; None for anything else."""
    payload = received.payload
    if not isinstance(payload, ChatPayload):
        return None
    columns: dict[str, Any] = {
        "message_id": received.message_id,
        "type": type(payload).__name__,
        "chat_id": payload.chat_id,
        "author": received.signer.hex,
        "clock": payload.clock,
        "sent_at_ms": received.timestamp_ms,
        "about": None,
        "text": None,
        "value": None,
    }
    match payload:
        case ChatMessage():
            bridged = payload.bridge_message
            columns |= {
                "about": payload.response_to or None,
                "text": bridged.content if bridged else payload.text,
                "value": payload.content_type.name,
            }
        case EditMessage():
            columns |= {"about": payload.message_id, "text": payload.text}
        case EmojiReaction():
            sign = "-" if payload.retracted else "+"
            columns |= {"about": payload.message_id, "value": sign + payload.type.name}
        case PinMessage():
            columns |= {"about": payload.message_id, "value": "+" if payload.pinned else "-"}
        case DeleteMessage():
            columns |= {"about": payload.message_id}
    return columns


def make_bot(node: str, community: str, folder: Path, journals: Path | None = None) -> StatusBot:
    options = BotOptions(reliability="sds" if journals else "plain", journals=journals)
    bot = StatusBot(node=node, community=community, options=options)

    @bot.on_payload
    async def write(received: Received) -> None:
        columns = line(received)
        if columns is None:
            return
        day = datetime.fromtimestamp(columns["clock"] / 1000, UTC).date()
        file = folder / f"date={day}" / "chat.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as lines:
            lines.write(json.dumps(columns, ensure_ascii=False) + "\n")

    return bot


if __name__ == "__main__":
    node, community, *folders = sys.argv[1:]
    make_bot(node, community, *map(Path, folders)).run()
