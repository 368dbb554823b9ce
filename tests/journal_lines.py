"""Journals as tests read them: a dictionary a line, with bytes that are whole again."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reliable_channel.runtime.journal_packing import Unpacker


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The lines that can be read; a process that was killed leaves a torn one."""
    return list(_whole(path.read_bytes()))


def _whole(text: bytes) -> Iterator[dict[str, Any]]:
    unpacker = Unpacker()
    for line in text.splitlines():
        try:
            values = json.loads(line)
        except ValueError:
            continue
        if values.pop("fresh", False) or values["event"] == "journal_opened":
            unpacker.begin()
        if (packed := values.pop("packed", None)) is not None:
            values["payload"] = b64encode(unpacker.unpack(packed)).decode()
        yield values
