"""What happens when a bot's function raises: its error handlers are asked, then it is logged."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from reliable_channel.spi import StateError

from .happenings import AboutMessage, Happening
from .membership import NotAMember
from .watching import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A function of the bot raised."""

    handler: str
    """Its name, as in the log; of a command `!name`."""
    error: Exception
    happening: Happening | None
    """What it was called with, such as a `Message`; None for a task."""


ErrorHandler = Callable[[Failure], Awaitable[Any]]


class Failures:
    """Asks error handlers.

    Args:
        watch: records an error handler that raises.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    async def guard(
        self,
        handler: str,
        error_handlers: Iterable[Sequence[ErrorHandler]],
        happening: Happening | None,
        call: Callable[[], Awaitable[Any]],
        *,
        otherwise: str | None = None,
    ) -> Any:
        """Call a function; if it raises, ask its error handlers in order, and raise again.

        The first text that an error handler returns is the user's answer, else `otherwise`.
        """
        try:
            return await call()
        except (StateError, NotAMember):
            raise
        except Exception as error:
            failure = Failure(handler=handler, error=error, happening=happening)
            answer = await self._ask(chain.from_iterable(error_handlers), failure)
            answer = otherwise if answer is None else answer
            if answer and isinstance(happening, AboutMessage):
                await happening.reply(answer)
            raise

    async def _ask(self, error_handlers: Iterable[ErrorHandler], failure: Failure) -> str | None:
        for one in error_handlers:
            try:
                answer = await one(failure)
                if answer is not None and not isinstance(answer, str):
                    raise TypeError(f"it returned {answer!r}; return a text or nothing")
            except (StateError, NotAMember):
                raise
            except Exception as error:  # no error handler is asked about another
                self._watch.count("error_handlers_failed")
                self._watch.log(
                    "error_handler_failed",
                    logging.ERROR,
                    error=True,
                    handler=getattr(one, "__qualname__", repr(one)),
                    why=repr(error),
                )
                continue
            if answer is not None:
                return answer
        return None
