"""Failures of a bot's functions, which error handlers can answer. After the error handlers, the
failure is logged."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import anyio

from reliable_channel.spi import StateError

from .events import CURRENT_TURN, AboutMessage, BotEvent, Turn
from .membership import NotAMember
from .reporting import Reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Failure of a function of the bot."""

    handler: str
    """Name of the function, as in the log. The name of a command has the form `!name`."""
    error: Exception
    event: BotEvent | None
    """Event with which the function was called, such as a `Message`. For a background task, `event`
    is None."""


ErrorHandler = Callable[[Failure], Awaitable[Any]]


class Failures:
    """Error handlers of a bot, in the order in which they are called.

    Args:
        reporter: records an error handler that raises.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    async def guard(
        self,
        handler: str,
        error_handlers: Iterable[Sequence[ErrorHandler]],
        event: BotEvent | None,
        call: Callable[[], Awaitable[Any]],
        *,
        otherwise: str | None = None,
    ) -> Any:
        """Call a function of the bot. If the function raises, `guard` calls the error handlers in
        order, and raises the error again.

        The user gets the first text that an error handler returns, or the text `otherwise`.
        """
        try:
            return await call()
        except (StateError, NotAMember):
            raise
        except Exception as error:
            failure = Failure(handler=handler, error=error, event=event)
            answer = await self._ask(chain.from_iterable(error_handlers), failure)
            answer = otherwise if answer is None else answer
            if answer and isinstance(event, AboutMessage):
                await event.reply(answer)
            raise

    async def _ask(self, error_handlers: Iterable[ErrorHandler], failure: Failure) -> str | None:
        for one in error_handlers:
            try:
                answer = await one(failure)
                if answer is not None and not isinstance(answer, str):
                    raise TypeError(
                        f"an error handler must return a text or nothing (got {answer!r})"
                    )
            except (StateError, NotAMember):
                raise
            except Exception as error:  # no error handler is asked about another
                self._reporter.count("error_handlers_failed")
                self._reporter.log(
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


Call: TypeAlias = tuple[str, Callable[[Turn], Awaitable[Any]]]
"""Name of a function, and a callable that runs it in a turn."""


class Isolation:
    """Calls the bot's functions, each with a time limit.

    Args:
        reporter: records what fails.
        timeout_ms: after which a function is cancelled.
    """

    def __init__(self, reporter: Reporter, timeout_ms: int) -> None:
        self._reporter = reporter
        self._timeout_ms = timeout_ms

    async def run(
        self, name: str, call: Callable[[Turn], Awaitable[Any]], turn: Turn, *, limited: bool = True
    ) -> None:
        """Call a function of the bot with a time limit. A failure of the function is logged and
        counted. Only a cancellation from outside is raised again.

        Raises:
            StateError: what must not be forgotten could not be written.
        """
        reporter = self._reporter
        timeout_s = self._timeout_ms / 1000 if limited else float("inf")
        CURRENT_TURN.set(turn)
        with anyio.move_on_after(timeout_s) as scope:
            try:
                await call(turn)
            except StateError:
                raise  # a bot that cannot remember would repeat itself
            except NotAMember as error:
                reporter.count("not_said", name)
                reporter.log("not_said", logging.WARNING, handler=name, why=str(error))
            except Exception as error:  # whatever it is, it is the author's
                reporter.count("handlers_failed", name)
                reporter.log(
                    "handler_failed", logging.ERROR, error=True, handler=name, why=repr(error)
                )
            else:
                reporter.count("handlers_run", name)
        if scope.cancelled_caught:
            reporter.count("handlers_timed_out", name)
            reporter.log("handler_timed_out", logging.ERROR, handler=name, timeout_s=timeout_s)
