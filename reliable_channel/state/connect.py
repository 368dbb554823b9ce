"""From a URL to a state store."""

from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from .base import StateStore
from .memory import MemoryStateStore
from .sqlite import Durability, SqliteStateStore


def memory_store(url: str, channel_id: str, sender_id: str) -> StateStore | None:
    """`memory:`, state that nothing outlives."""
    if urlsplit(url).scheme != "memory":
        return None
    return MemoryStateStore(outlives_channel=False)


def sqlite_store(url: str, channel_id: str, sender_id: str) -> StateStore | None:
    """`sqlite:///path`, or `sqlite:////path` for an absolute one; `?durability=power` as well.

    `{channel_id}` and `{sender_id}` in the path stand for those of the channel, so that one URL
    serves many.

    Raises:
        ValueError: it is not of that form.
    """
    parts = urlsplit(url)
    if parts.scheme != "sqlite":
        return None
    path, values = unquote(parts.path[1:]), dict(parse_qsl(parts.query))
    durability = values.pop("durability", "process")
    if parts.netloc or not path or values or durability not in ("process", "power"):
        raise ValueError(
            f"state is {url!r}; allowed is sqlite:///relative/path or sqlite:////absolute/path, "
            "with ?durability=power to outlive a loss of power"
        )
    for name, value in (("{channel_id}", channel_id), ("{sender_id}", sender_id)):
        path = path.replace(name, quote(value, safe=""))
    kind: Durability = "power" if durability == "power" else "process"
    return SqliteStateStore(Path(path), durability=kind)
