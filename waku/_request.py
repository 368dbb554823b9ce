"""One call of a node's REST API as it goes out, and its answer as it comes in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from waku._gate import Load

__all__ = ["Answer", "Flavour", "Repeat", "Request"]

MAX_ANSWER_VALUES: Final = 500_000
"""JSON values of one answer; two bytes are enough for one, and in memory it takes a hundred times
that. A page of Store has some 1,000."""


class Flavour(Enum):
    """The software of a node, where it needs other requests than the rest."""

    NWAKU = auto()
    """nwaku, and logos-delivery, its successor."""
    GO_WAKU = auto()
    EMBEDDED = auto()
    """Our own node: nwaku's requests and answers, and subscriptions of each client apart."""


class Repeat(Enum):
    """When a request may be sent again."""

    SAFE = auto()
    """After any failure that may pass: reading without a trace, or setting what is set already."""
    ANSWERED = auto()
    """After a failure that may pass, but not after a timeout: the answer would take as long."""
    UNSENT = auto()
    """Only if it certainly never left: publishing, and reading what the read clears."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call as it goes out."""

    call: str
    """The client's method, for error messages."""
    method: str
    path: str
    """Below the base URL, percent-encoded."""
    repeat: Repeat
    params: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    """JSON value, None for no body."""
    load: Load | None = None
    """What it puts on other nodes; None for what this one answers alone."""

    @property
    def name(self) -> str:
        """The call with its verb and path, as error messages begin."""
        return f"{self.call} ({self.method} {self.path})"


@dataclass(frozen=True, slots=True)
class Answer:
    """A success as it came in."""

    request: Request
    status: int
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 are replaced."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> object:
        """Return the JSON value of the body.

        Raises:
            ValueError: the body is not JSON, or has more values than any answer needs.
        """
        if len(self.body) > MAX_ANSWER_VALUES:  # else there cannot be as many
            values = sum(map(self.body.count, (b",", b"[", b"{")))
            if values > MAX_ANSWER_VALUES:
                raise ValueError(f"the answer has more than {MAX_ANSWER_VALUES} JSON values")
        try:
            value: object = json.loads(self.body)
        except RecursionError:  # a body of brackets only
            raise ValueError("the JSON of the answer is nested too deeply") from None
        return value
