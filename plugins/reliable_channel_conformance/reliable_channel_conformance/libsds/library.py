"""C library of nim-sds (`library/libsds.h` of 07491b28, version 0.3.0), called with ctypes.

The library returns answers and events on a thread of its own. A call waits for the library's
answer. Events go to a queue, whose reader decides when to handle them.
"""

import ctypes
import json
from base64 import b64decode
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

RET_OK: Final = 0
_CALLBACK: Final = CFUNCTYPE(None, c_int, POINTER(c_char), c_size_t, c_void_p)
_SIGNATURES: Final[dict[str, tuple[Any, ...]]] = {
    "SdsNewReliabilityManager": (_CALLBACK, c_void_p),
    "SdsSetEventCallback": (c_void_p, _CALLBACK, c_void_p),
    "SdsCleanupReliabilityManager": (c_void_p, _CALLBACK, c_void_p),
    "SdsWrapOutgoingMessage": (
        *(c_void_p, c_char_p, c_size_t, c_char_p, c_char_p),
        *(_CALLBACK, c_void_p),
    ),
    "SdsUnwrapReceivedMessage": (c_void_p, c_char_p, c_size_t, _CALLBACK, c_void_p),
    "SdsMarkDependenciesMet": (
        *(c_void_p, POINTER(c_char_p), c_size_t, c_char_p),
        *(_CALLBACK, c_void_p),
    ),
    "SdsStartPeriodicTasks": (c_void_p, _CALLBACK, c_void_p),
}
_RESULTS: Final = {"SdsNewReliabilityManager": c_void_p, "SdsSetEventCallback": None}
"""All others return a status."""


class LibraryRefused(Exception):
    """Error that the library answered a call with an error. The text of the error is that of the
    library."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Message that another message waits for."""

    message_id: str
    retrieval_hint: bytes


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """Received message as the library decodes it."""

    channel_id: str
    content: bytes
    missing: tuple[Missing, ...]
    """Dependencies of the message that are missing. If dependencies are missing, the content must
    be held back until `message_ready`."""


@dataclass(frozen=True, slots=True)
class LibraryEvent:
    """Event that the library emitted."""

    kind: str
    """Kind of event, such as `message_ready`, `message_sent` or `missing_dependencies`."""
    message_id: str = ""
    data: bytes = b""
    """Message that must be broadcast, for the event `repair_ready`."""
    missing: tuple[Missing, ...] = ()


class Library:
    """Reliability manager of the library.

    Raises:
        OSError: the file cannot be loaded, or lacks a function of `libsds.h`.
        LibraryRefused: it makes no manager.
    """

    def __init__(self, path: Path) -> None:
        self._functions = _load(path)
        self._events = SimpleQueue[LibraryEvent]()
        self._on_event = _CALLBACK(self._take_event)
        """Kept: ctypes frees a callback that nothing refers to."""
        self._context: int | None = None
        self._context = self._answered(
            lambda callback: self._functions["SdsNewReliabilityManager"](callback, None),
            returns_context=True,
        )[0]
        self._functions["SdsSetEventCallback"](self._context, self._on_event, None)
        self._call("SdsStartPeriodicTasks")

    def wrap(self, content: bytes, message_id: str, channel_id: str) -> bytes:
        """Return the bytes of a message that can be published.

        Raises:
            LibraryRefused: there is nothing to send, the message is too long, or there is no
                channel.
        """
        names = message_id.encode(), channel_id.encode()
        text = self._call("SdsWrapOutgoingMessage", content, len(content), *names)
        return bytes(int(number) for number in text.split(",")) if text else b""

    def unwrap(self, data: bytes) -> Unwrapped:
        """Read a received message with the library.

        Raises:
            LibraryRefused: the message is malformed.
        """
        found = json.loads(self._call("SdsUnwrapReceivedMessage", data, len(data)))
        return Unwrapped(
            found["channelId"], bytes(found["message"]), _missing(found.get("missingDeps", ()))
        )

    def mark_met(self, message_ids: list[str], channel_id: str) -> None:
        """Let missing messages count as received, because they will not arrive.

        Raises:
            LibraryRefused: there is no such channel.
        """
        ids = (c_char_p * len(message_ids))(*(each.encode() for each in message_ids))
        self._call("SdsMarkDependenciesMet", ids, len(message_ids), channel_id.encode())

    def events(self) -> list[LibraryEvent]:
        """Return all events since the last call of `events`."""
        return [self._events.get() for _ in range(self._events.qsize())]

    def close(self) -> None:
        if self._context is not None:
            self._call("SdsCleanupReliabilityManager")
            self._context = None

    def _call(self, name: str, *arguments: object) -> str:
        function = self._functions[name]
        return self._answered(lambda callback: function(self._context, *arguments, callback, None))[
            1
        ]

    def _answered(
        self, call: Callable[[Any], Any], *, returns_context: bool = False
    ) -> tuple[Any, str]:
        """Call a function and wait for its callback."""
        answers = SimpleQueue[tuple[int, str]]()

        def answer(status: int, text: Any, length: int, _: object) -> None:
            answers.put((status, _text(text, length)))

        callback = _CALLBACK(answer)
        returned = call(callback)
        if (returns_context and not returned) or (not returns_context and returned != RET_OK):
            # An error is reported before the call returns, or not at all.
            detail = answers.get()[1] if answers.qsize() else f"it returned {returned}"
            raise LibraryRefused(detail)
        status, text = answers.get()
        if status != RET_OK:
            raise LibraryRefused(text)
        return returned, text

    def _take_event(self, status: int, text: Any, length: int, _: object) -> None:
        if status != RET_OK:
            return
        found = json.loads(_text(text, length))
        self._events.put(
            LibraryEvent(
                found["eventType"],
                found.get("messageId", ""),
                b64decode(found.get("message", "")),
                _missing(found.get("missingDeps", ())),
            )
        )


def _load(path: Path) -> dict[str, Any]:
    library = ctypes.CDLL(str(path))
    functions = {}
    for name, arguments in _SIGNATURES.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise OSError(f"{path} has no function {name}; it is not libsds 0.3.0") from error
        function.argtypes, function.restype = arguments, _RESULTS.get(name, c_int)
        functions[name] = function
    return functions


def _missing(entries: Any) -> tuple[Missing, ...]:
    return tuple(
        Missing(entry["messageId"], b64decode(entry.get("retrievalHint", ""))) for entry in entries
    )


def _text(text: Any, length: int) -> str:
    return ctypes.string_at(text, length).decode("utf-8", "replace") if text and length else ""
