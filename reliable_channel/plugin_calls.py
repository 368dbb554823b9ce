"""How plugins are called: one by one, so that whoever fails or answers nonsense is known by name.

Pluggy finds the plugins, orders them and checks their signatures.
"""

import inspect
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from reprlib import Repr
from typing import Any, Final

import pluggy

from .errors import PluginError

TRACE: Final = "RELIABLE_CHANNEL_TRACE_PLUGINS"
SLOW_S: Final = 1.0
"""A hook that takes so long is told: it holds up whatever else its thread has to do."""
_short = Repr()
_short.maxstring = _short.maxother = 80


class BuiltIn:
    """A plugin that is part of the SDK."""


@dataclass(frozen=True, slots=True)
class Call:
    """One plugin's implementation of one hook."""

    plugin: str
    hook: str
    function: Callable[..., object]
    takes: tuple[str, ...]
    built_in: bool
    traced: bool
    now_s: Callable[[], float] = time.perf_counter

    def __call__(self, **arguments: object) -> object:
        """Call it with those arguments that it takes."""
        taken = {name: arguments[name] for name in self.takes}
        if not self.traced:
            return self.function(**taken)
        shown = ", ".join(f"{name}={_short.repr(value)}" for name, value in taken.items())
        # Before the call: of one that hangs, this much is seen.
        _print(f"{self.plugin}: {self.hook}({shown})")
        began_s = self.now_s()
        answer: object = "raised"
        try:
            answer = self.function(**taken)
        finally:
            took_ms = 1000 * (self.now_s() - began_s)
            _print(f" -> {_short.repr(answer)} in {took_ms:.2f} ms\n")
        return answer

    def asked(self, kind: type, **arguments: object) -> Any:
        """Call it, and hold it to its word.

        Raises:
            PluginError: it failed, or its answer is not of this kind.
            ValueError: it refuses the arguments.

        One that takes long is named in a `RuntimeWarning`.
        """
        began_s = self.now_s()
        try:
            answer = self(**arguments)
        except ValueError as error:
            if self.built_in:
                raise
            raise ValueError(f"{error} (says plugin {self.plugin!r})") from error
        except Exception as error:
            raise PluginError(f"plugin {self.plugin!r} failed in {self.hook}: {error!r}") from error
        if (took_s := self.now_s() - began_s) >= SLOW_S and not self.built_in:
            warnings.warn(
                f"plugin {self.plugin!r} took {took_s:.1f} s in {self.hook}, which must not block",
                RuntimeWarning,
                stacklevel=2,
            )
        if answer is None or (isinstance(answer, kind) and not inspect.isclass(answer)):
            return answer
        raise PluginError(
            f"plugin {self.plugin!r} returned {told(answer)} from {self.hook}; allowed are None "
            f"and a {kind.__name__}{_lacking(answer, kind)}"
        )


def _print(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)  # noqa: T201 - it was asked for


def told(answer: object) -> str:
    """What a plugin returned, in words; a coroutine is closed, as nobody will await it."""
    if inspect.iscoroutine(answer):
        answer.close()
        return "a coroutine"
    return _short.repr(answer)


def calls(manager: pluggy.PluginManager, hook: str) -> list[Call]:
    """The implementations of a hook, last registered first."""
    traced = os.environ.get(TRACE, "") not in ("", "0")
    return [
        Call(
            implementation.plugin_name,
            hook,
            implementation.function,
            implementation.argnames,
            isinstance(implementation.plugin, BuiltIn),
            traced,
        )
        for implementation in reversed(getattr(manager.hook, hook).get_hookimpls())
    ]


def the_answer(
    manager: pluggy.PluginManager, hook: str, kind: type, refusal: str, **arguments: object
) -> tuple[Call, Any]:
    """The answer of the one plugin that has one, and whose it is.

    Raises:
        PluginError: a plugin failed, answered nonsense, or is not the only one with an answer.
        ValueError: a plugin refuses the arguments, or nobody has an answer; then the text is
            `refusal`.
    """
    answers = []
    for call in calls(manager, hook):
        answer = call.asked(kind, **arguments)
        if answer is not None:
            answers.append((call, answer))
    if len(answers) > 1:
        names = " and ".join(repr(call.plugin) for call, _ in answers)
        raise PluginError(
            f"{hook}: {next(iter(arguments.values()))!r} is claimed by the plugins {names}; leave "
            "all but one out (RELIABLE_CHANNEL_PLUGINS names those to load)"
        )
    if not answers:
        raise ValueError(refusal)
    return answers[0]


def _lacking(answer: object, kind: type) -> str:
    """What a value lacks of a protocol, in words."""
    wanted = [name for name in vars(kind) | kind.__annotations__ if not name.startswith("_")]
    lacking = [name for name in wanted if not hasattr(answer, name)]
    return f", which has {', '.join(lacking)}" if lacking else ""
