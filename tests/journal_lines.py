"""Journals as tests read them: a dictionary a line, with bytes that are whole again."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from reliable_channel.runtime.journal_packing import Packer, Unpacker


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


def journal_text(lines: Iterable[Mapping[str, Any]]) -> bytes:
    """The lines as a `Journal` writes them; bytes that are no base64 stay as they are."""
    return b"".join(
        json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in _packed(lines)
    )


def _packed(lines: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    packer = Packer()
    for line in lines:
        values = dict(line)
        if values["event"] == "journal_opened":
            packer = Packer()
        with suppress(KeyError, TypeError, ValueError):
            content = b64decode(values["payload"], validate=True)
            del values["payload"]
            values |= {"fresh": True} if packer.begins() else {}
            pack = packer.pack if "source" in values else packer.pack_value
            values["packed"] = pack(content)
        yield values
