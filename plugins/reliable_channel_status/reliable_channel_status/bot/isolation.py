"""Functions of a bot's author: one that fails or hangs is named, and the bot goes on."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio

from reliable_channel.spi import StateError

from .happenings import CURRENT_TURN, Turn
from .membership import NotAMember
from .watching import Watch

Call: TypeAlias = tuple[str, Callable[[Turn], Awaitable[Any]]]
"""A function's name, and how to call it in a turn."""


class Isolation:
    """Calls functions, each for a limited time.

    Args:
        watch: records what fails.
        timeout_ms: after which a function is cancelled.
    """

    def __init__(self, watch: Watch, timeout_ms: int) -> None:
        self._watch = watch
        self._timeout_ms = timeout_ms

    async def run(
        self, name: str, call: Callable[[Turn], Awaitable[Any]], turn: Turn, *, limited: bool = True
    ) -> None:
        """Call a function; its failure is logged and counted. Only cancellation from outside passes
        through.

        Raises:
            StateError: what must not be forgotten could not be written.
        """
        watch = self._watch
        timeout_s = self._timeout_ms / 1000 if limited else float("inf")
        CURRENT_TURN.set(turn)
        with anyio.move_on_after(timeout_s) as scope:
            try:
                await call(turn)
            except StateError:
                raise  # a bot that cannot remember would repeat itself
            except NotAMember as error:
                watch.count("not_said", name)
                watch.log("not_said", logging.WARNING, handler=name, why=str(error))
            except Exception as error:  # whatever it is, it is the author's
                watch.count("handlers_failed", name)
                watch.log(
                    "handler_failed", logging.ERROR, error=True, handler=name, why=repr(error)
                )
            else:
                watch.count("handlers_run", name)
        if scope.cancelled_caught:
            watch.count("handlers_timed_out", name)
            watch.log("handler_timed_out", logging.ERROR, handler=name, timeout_s=timeout_s)
