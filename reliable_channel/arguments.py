"""Checks of what a channel is given, so that a mistake is named where it was made and not at the
first message."""

from pathlib import Path
from typing import Final

from pluggy import PluginManager

from .plugin_answers import state_store
from .state import StateStore

MAX_META_BYTES: Final = 64
"""What a Waku message takes beside its payload (14/WAKU2-MESSAGE)."""
MAX_NAME_CHARACTERS: Final = 1024


def checked_name(name: str, value: object) -> str:
    """A channel's or a participant's name.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, str) and 0 < len(value) <= MAX_NAME_CHARACTERS and _is_text(value):
        return value
    raise ValueError(
        f"{name} is {value!r}; allowed is a text of 1 to {MAX_NAME_CHARACTERS} characters"
    )


def checked_share(name: str, value: object) -> float | None:
    """A share, or None.

    Raises:
        ValueError: it is none.
    """
    if value is None or (isinstance(value, (int, float)) and 0 <= value <= 1):
        return value
    raise ValueError(f"{name} is {value!r}; allowed is a share from 0 to 1")


def checked_path(name: str, value: object) -> Path | None:
    """The path of a file, or None.

    Raises:
        ValueError: it is none.
    """
    if value is None or isinstance(value, (str, Path)):
        return None if value is None else Path(value)
    raise ValueError(f"{name} is {value!r}; allowed is the path of a file")


def checked_seed(value: object) -> int | None:
    """A seed, or None.

    Raises:
        ValueError: it is none.
    """
    if value is None or isinstance(value, int):
        return value
    raise ValueError(f"seed is {value!r}; allowed is a whole number")


def checked_marker(value: bytes | None) -> bytes | None:
    """What is attached to each message, or None.

    Raises:
        ValueError: it is too long.
    """
    if value is not None and len(value) > MAX_META_BYTES:
        raise ValueError(f"marker has {len(value)} bytes; at most {MAX_META_BYTES} are allowed")
    return value


def checked_state(
    manager: PluginManager, value: object, channel_id: str, sender_id: str
) -> StateStore | None:
    """The store of a state; None where nothing would outlive the channel.

    Raises:
        ValueError: it is neither a URL that a plugin knows nor a store.
    """
    if value is None:
        return None
    if isinstance(value, str):
        store = state_store(manager, value, channel_id, sender_id)
    elif isinstance(value, StateStore):
        store = value
    else:
        raise ValueError(
            f"state is {value!r}; allowed is a URL such as sqlite:///path, or a StateStore"
        )
    return store if store.outlives_channel else None


def _is_text(value: str) -> bool:
    """Whether it can be written as UTF-8: lone surrogates cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
