"""Application of a simulated participant, which keeps its state when the process restarts.

The application reads events at its own speed and confirms some of them. An application that does
not know a message's fate sends the message again under the same key.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from reliable_channel.engine.requests import Accepted
from reliable_channel.events import AnyEvent
from reliable_channel.state import StateError

from .process import Process
from .scenario import Habits

AGAIN_MS: Final = 20_000
"""Time until the application sends a refused or unknown message again."""

RECENT: Final = 5
"""Number of messages that the application may send again after a crash."""


@dataclass(slots=True)
class _Draft:
    payload: bytes
    key: str | None
    repeats: int = 0
    """How often it is sent again though it was accepted."""


class Application:
    """Application that acts at random, from the generator `random`."""

    def __init__(
        self,
        name: str,
        habits: Habits,
        payload_bytes: int,
        random: Callable[[], float],
        note: Callable[[str], None],
    ) -> None:
        self._name = name
        self._habits = habits
        self._payload_bytes = payload_bytes
        self._random = random
        self._note = note
        self._process: Process[Any] | None = None
        self._written = 0
        self._open: dict[int, _Draft] = {}
        """What it does not know to be accepted, by the number of the message."""
        self._recent: deque[tuple[int, _Draft]] = deque(maxlen=RECENT)
        """What it sent last: after a crash it does not remember that it was accepted."""
        self._unread: deque[AnyEvent] = deque()

    def started(self, process: Process[Any]) -> None:
        """Continue with a new process, and send messages again that may be lost."""
        self._process = process
        for number, draft in self._recent:
            if self._random() < self._habits.repeats:
                self._open.setdefault(number, draft)
        for number in self._open:
            process.driver.plan(self._delay_ms(AGAIN_MS), self._submit, number)

    def stopped(self, *, remembers: bool) -> None:
        """Note that the participant's process died. Events that the application has not read are
        lost, unless they are emitted again. If no state `remembers` the keys, the application
        cannot send messages again."""
        self._process = None
        self._unread.clear()
        if not (remembers and self._habits.repeats):
            self._open.clear()
            self._recent.clear()

    def write(self) -> None:
        """Send a message, if the participant has a process."""
        if self._process is None:
            return
        self._written += 1
        draft = _Draft(self._payload(), None)
        if self._habits.repeats:
            draft.key = f"{self._name} {self._written}"
            draft.repeats = self._random() < self._habits.repeats
        self._open[self._written] = draft
        self._recent.append((self._written, draft))
        self._submit(self._written)

    def read(self, event: AnyEvent) -> None:
        """Receive an event, and handle it after all earlier events."""
        self._unread.append(event)
        if len(self._unread) == 1:
            self._plan(self._habits.reading_ms, self._handle)

    def _handle(self) -> None:
        event = self._unread.popleft()
        if self._process is not None and self._random() < self._habits.confirms:
            self._process.confirm(event)
        if self._unread:
            self._plan(self._habits.reading_ms, self._handle)

    def _submit(self, number: int) -> None:
        if (draft := self._open.get(number)) is None or self._process is None:
            return
        try:
            self._process.send(draft.payload, draft.key, partial(self._answered, number, draft))
        except StateError:
            self._note("is refused: its state cannot be written")
            self._refused(number)

    def _answered(self, number: int, draft: _Draft, accepted: Accepted) -> None:
        if accepted.failure is not None:
            self._note(f"is refused {accepted.message_ids[0]}")
            self._refused(number)
        elif draft.repeats:
            draft.repeats -= 1
            self._plan(self._delay_ms(AGAIN_MS), self._submit, number)
        else:
            self._open.pop(number, None)

    def _refused(self, number: int) -> None:
        """With a key there is no harm in sending it again."""
        if self._habits.repeats:
            self._plan(AGAIN_MS, self._submit, number)
        else:
            self._open.pop(number, None)

    def _payload(self) -> bytes:
        share = self._random() if self._habits.payload_bytes else 0.0
        longest = max(self._payload_bytes, int(share * share * self._habits.payload_bytes))
        return f"{self._name} writes {self._written}".encode().ljust(longest, b".")

    def _delay_ms(self, max_ms: int) -> int:
        return int(self._random() * max_ms)

    def _plan(self, in_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        if self._process is not None:
            self._process.driver.plan(in_ms, action, *arguments)
