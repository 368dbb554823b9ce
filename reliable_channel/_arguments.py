"""Checks of a channel's arguments. An error names the wrong argument at once, and not at the first
message."""

import logging
from pathlib import Path
from typing import Any, Final
from unicodedata import is_normalized, normalize

from ._contracts.encryption import Encryption
from ._contracts.signing import CheckedSigning
from ._plugins.registry import Registry
from ._plugins.resolve import make_encryption, make_state_store
from ._terminal_text import is_text
from .options import ChannelOptions, OptionValues, PresetName, close_to
from .sds.declared import declared
from .state import StateStore
from .transport import Transport

MAX_NAME_CHARACTERS: Final = 1024
INVISIBLE: Final = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0)))) + "\ufeff"
"""Control characters, and the byte order mark."""
_LOGGER: Final = logging.getLogger("reliable_channel")


def checked_path(name: str, value: object) -> Path | None:
    """Return the path of a file, or None.

    Raises: ValueError: the value is no path.
    """
    if value is None or isinstance(value, (str, Path)):
        return None if value is None else Path(value)
    raise ValueError(f"`{name}` must be the path of a file (got {value!r})")


def checked_name(name: str, value: object) -> str:
    """Return a text of 1 to 1024 characters that can be written as UTF-8.

    Raises: ValueError: the value is no such text.
    """
    if isinstance(value, str) and 0 < len(value) <= MAX_NAME_CHARACTERS and is_text(value):
        return value
    raise ValueError(
        f"`{name}` must be a text of 1 to {MAX_NAME_CHARACTERS} characters (got {value!r})"
    )


def checked_id(name: str, value: object) -> str:
    """Return the id of a channel or participant. Warn of an id that looks like another one.

    Raises: ValueError: it is not a text, or begins or ends with an invisible character.
    """
    checked = checked_name(name, value)
    bare = checked.strip(INVISIBLE)
    if bare != checked:
        raise ValueError(
            f"`{name}` must not begin or end with control characters (got {checked!r}); write "
            f"{bare!r}, or remove the line end from the file that it comes from"
        )
    if not is_normalized("NFC", checked):
        _LOGGER.warning(
            "`%s` is %s: %s looks the same, and is another one, because ids are compared as bytes; "
            "use the latter (Unicode's form NFC) everywhere",
            name,
            ascii(checked),
            ascii(normalize("NFC", checked)),
        )
    return checked


def checked_payload(value: object) -> bytes:
    """Return a payload as bytes.

    Raises: TypeError: it is neither bytes nor similar to bytes.
    """
    try:
        return bytes(memoryview(value))  # type: ignore[arg-type]
    except TypeError:
        advice = "; encode it: send(text.encode())" if isinstance(value, str) else ""
        raise TypeError(f"`payload` must be bytes (got {_kind(value)}){advice}") from None


def checked_options(preset: PresetName, options: object, values: OptionValues) -> ChannelOptions:
    """Return the options of the preset, or the given ones, with single options over them.

    Raises:
        ValueError: a value is not allowed, or `options` is not a `ChannelOptions`.
        TypeError: there is no option of such a name.
    """
    for name in values:
        if name not in (names := declared(ChannelOptions)):
            raise TypeError(f"there is no argument or option `{name}`{close_to(name, names)}")
    if options is None:
        return ChannelOptions.of_preset(preset, **values)
    if not isinstance(options, ChannelOptions):
        raise ValueError(
            f"`options` must be a ChannelOptions (got {_kind(options)}); write "
            "options=ChannelOptions(retry_interval_ms=5000), or retry_interval_ms=5000 without it"
        )
    if preset != "documented":
        raise ValueError(
            f"`preset` and `options` exclude each other; write options=ChannelOptions.of_preset("
            f"{preset!r}, …)"
        )
    return options.changed(**values)


def checked_transport(value: object) -> Transport | None:
    """Return a transport, or None.

    Raises: ValueError: it lacks the methods of a transport.
    """
    if value is None or (isinstance(value, Transport) and not isinstance(value, type)):
        return value
    raise ValueError(
        "`transport` must have the methods of reliable_channel.transport.Transport (got "
        f"{_kind(value)}); derive your class from BaseTransport, or give the address of a node as "
        "`node`"
    )


def checked_encryption(
    registry: Registry, value: object, channel_id: str, sender_id: str
) -> Encryption | None:
    """Return an encryption, or None.

    Raises:
        ValueError: it is neither a URL that a plugin knows nor an encryption.
    """
    if isinstance(value, str):
        return make_encryption(registry, value, channel_id, sender_id)
    if value is None or (isinstance(value, Encryption) and not isinstance(value, type)):
        return value
    raise ValueError(
        "`encryption` must be a URL, or have async methods `encrypt` and `decrypt` (got "
        f"{_kind(value)}); reliable_channel.spi.EncryptionPair makes such an object from two "
        "functions"
    )


def checked_signing(value: Any, sender_id: str, *, required: bool) -> CheckedSigning | None:
    """Return a signing that proves `sender_id`, or None.

    Raises: ValueError: the value is no signing, does not prove `sender_id`, or is absent while
    signatures are required.
    """
    if value is None:
        if required:
            raise ValueError("`require_signatures` needs `signing`, which is None")
        return None
    if isinstance(value, type) or not all(map(callable, _methods(value, "sign", "verify"))):
        raise ValueError(f"`signing` must have methods `sign` and `verify` (got {_kind(value)})")
    return CheckedSigning(value, sender_id)


def checked_state(
    registry: Registry, value: object, channel_id: str, sender_id: str
) -> StateStore | None:
    """Return the store of a state, or None where nothing would outlive the channel.

    Raises:
        ValueError: it is neither a URL that a plugin knows nor a store.
    """
    if value is None:
        return None
    if isinstance(value, str):
        store = make_state_store(registry, value, channel_id, sender_id)
    elif isinstance(value, StateStore):
        store = value
    else:
        raise ValueError(
            f"`state` must be a URL such as sqlite:///path, or a StateStore (got {value!r})"
        )
    return store if store.outlives_channel else None


def _methods(value: object, *names: str) -> list[object]:
    return [getattr(value, name, None) for name in names]


def _kind(value: object) -> str:
    """A given value, for an error text."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
