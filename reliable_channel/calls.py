"""Calls of plugin functions: with the arguments that they name, timed and traced."""

import inspect
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from .guard import SHORT, Contract, Errors, Guard

TRACE: Final = "RELIABLE_CHANNEL_TRACE_PLUGINS"
SLOW_S: Final = 1.0
"""A call that takes this long is reported: it blocks everything else in its thread."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function of a plugin, which is called with those of the offered arguments that it takes."""

    plugin: str
    what: str
    function: Callable[..., object]
    takes: frozenset[str] | None = None
    """Names of its parameters; None where it takes everything."""
    built_in: bool = False
    now_s: Callable[[], float] = field(default=time.perf_counter, repr=False)

    def __call__(self, **offered: object) -> object:
        """Call it unguarded; prints the call where tracing is on."""
        taken = offered
        if self.takes is not None:
            taken = {name: value for name, value in offered.items() if name in self.takes}
        return self._traced(taken) if is_traced() else self.function(**taken)

    def guarded(self, contract: Contract, passes: Errors = (), **offered: object) -> Any:
        """Call it and check the result. A call that takes long is named in a `RuntimeWarning`.

        Raises:
            PluginError: it failed, or its result breaks the contract.
            ValueError: it refuses the arguments, and `passes` has `ValueError`.
        """
        guard = Guard(f"plugin {self.plugin!r}")
        began_s = self.now_s()
        with guard.watching(self.what, passes):
            value = self(**offered)
        if (took_s := self.now_s() - began_s) >= SLOW_S and not self.built_in:
            warnings.warn(
                f"{guard.owner}: {self.what} took {took_s:.1f} s; it must not block",
                RuntimeWarning,
                stacklevel=2,
            )
        return guard.checked(self.what, value, contract)

    def _traced(self, taken: dict[str, object]) -> object:
        arguments = ", ".join(f"{name}={SHORT.repr(value)}" for name, value in taken.items())
        # Printed before the call, so that a call that hangs is visible.
        _print(f"{self.plugin}: {self.what}({arguments})")
        began_s, value = self.now_s(), "raised"
        try:
            value = self.function(**taken)  # type: ignore[assignment]
            return value
        finally:
            took_ms = 1000 * (self.now_s() - began_s)
            _print(f" -> {SHORT.repr(value)} in {took_ms:.2f} ms\n")


def parameters(function: Callable[..., object]) -> tuple[frozenset[str] | None, frozenset[str]]:
    """Names of a function's parameters (None: any), and of those without a default."""
    found = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in found):
        return None, frozenset()
    named = [one for one in found if one.kind is not one.VAR_POSITIONAL]
    required = frozenset(one.name for one in named if one.default is one.empty)
    return frozenset(one.name for one in named), required


def is_traced() -> bool:
    """Whether `RELIABLE_CHANNEL_TRACE_PLUGINS` is set."""
    return os.environ.get(TRACE, "") not in ("", "0")


def _print(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)  # noqa: T201 - requested by the user
