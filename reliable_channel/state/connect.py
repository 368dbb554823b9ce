"""Opening of state stores by their URLs."""

import re
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from .._contracts.state_store import StateStore

if TYPE_CHECKING:
    from .sqlite import Durability

_URL: Final = re.compile(
    r"sqlite:///(?P<path>[^?]+)(\?durability=(?P<durability>process|power))?", re.IGNORECASE
)
_PLACEHOLDER: Final = re.compile(r"\{(channel|sender)_id\}")
LONGEST_NAME: Final = 250
"""Maximum length of a file name (bytes). File systems allow 255 bytes, of which the lock file
beside the state file needs 5 for `.lock`. The file `.commits` has a longer name and may fail, so
that fewer losses are noticed."""
_LONGEST_VALUE: Final = 100
"""Bytes of a channel or sender id where a name would become too long."""


def memory_store(url: str) -> StateStore:
    """Return the store for the URL `memory:`, whose content ends with the channel.

    Raises:
        ValueError: the URL has another form.
    """
    if url.lower() != "memory:":
        raise ValueError(
            f"`state` must be memory: alone (got {url!r}); sqlite:///path keeps it in a file"
        )
    from .memory import MemoryStateStore

    return MemoryStateStore(outlives_channel=False)


def sqlite_store(url: str, channel_id: str, sender_id: str) -> StateStore:
    """Return the store for a URL `sqlite:///path`, or `sqlite:////path` for an absolute path.

    The path is not decoded, so `#` and `%` stand for themselves. The URL may end with
    `?durability=power`. In the path, `{channel_id}` and `{sender_id}` stand for the ids of the
    channel, percent-encoded. If an id makes a name too long, the name ends with a hash. Folders
    named by ids are created, but other folders must exist.

    Raises:
        ValueError: the URL has another form.
    """
    matched = _URL.fullmatch(url)
    if matched is None:
        raise ValueError(
            f"`state` must be sqlite:///relative/path or sqlite:////absolute/path (got {url!r}); "
            "the path holds no question mark, and ?durability=power after the path protects "
            "against a loss of power; for any other path pass SqliteStateStore(Path(…))"
        )
    names = matched["path"].split("/")
    fixed = list(takewhile(lambda name: not _PLACEHOLDER.search(name), names))
    folder = Path("/".join([*fixed, ""])) if len(fixed) < len(names) - 1 else None
    path = Path("/".join(_expanded(name, channel_id, sender_id) for name in names))
    durability: Durability = "power" if matched["durability"] == "power" else "process"
    from .sqlite import SqliteStateStore

    return SqliteStateStore(path, durability=durability, folder=folder)


def _expanded(name: str, channel_id: str, sender_id: str) -> str:
    """One name of a path, with ids in place of what stands for them."""
    values = {"{channel_id}": _quoted(channel_id), "{sender_id}": _quoted(sender_id)}
    for shorten in (str, _shortened):
        made = name
        for placeholder, value in values.items():
            made = made.replace(placeholder, shorten(value))
        if len(made.encode()) <= LONGEST_NAME:
            break
    return made


def _quoted(value: str) -> str:
    """An id as a part of a name that leads nowhere else: `.` and `..` are directories."""
    return quote(value, safe="") if value.strip(".") else value.replace(".", "%2E")


def _shortened(value: str) -> str:
    """An id by its beginning and a hash; `%s` is in no id that was quoted."""
    if len(value) <= _LONGEST_VALUE:
        return value
    end = f"%sha256-{sha256(value.encode()).hexdigest()[:32]}"
    return value[: _LONGEST_VALUE - len(end)] + end
