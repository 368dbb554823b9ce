"""Code of plugins: called with the arguments that it names, traced, and named in its errors.

While a plugin is loaded or a channel is made, an error becomes one `PluginError`. Later an error
keeps its type and gets a note, such as `plugin 'pigeons': transport 'pigeon'`.
"""

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from reprlib import Repr
from time import perf_counter
from types import SimpleNamespace
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar, cast

from ..errors import PluginError

TRACE: Final = "RELIABLE_CHANNEL_TRACE_PLUGINS"
SLOW_S: Final = 1.0
"""Duration from which a call is reported, because it blocks everything else in its thread."""
SHORT: Final = Repr()
SHORT.maxstring = SHORT.maxother = 80

P = ParamSpec("P")
T = TypeVar("T")
Async: TypeAlias = Callable[P, Coroutine[Any, Any, T]]


@dataclass(frozen=True, slots=True)
class Owner:
    """Owner of code that the SDK calls: a plugin, or the application."""

    note: str
    """Plugin and thing, such as `plugin 'pigeons': transport 'pigeon'`."""
    shown: Callable[[object], str] = SHORT.repr
    """Function that returns the text of an argument in a traced call."""

    def add_note(self, error: Exception) -> None:
        """Name the owner in an error, once."""
        if self.note not in getattr(error, "__notes__", ()):
            error.add_note(self.note)

    def function(
        self, function: Callable[P, T], check: Callable[[T], None] | None = None
    ) -> Callable[P, T]:
        """Return the function with the note on its errors, and on those of a check of its value."""

        @wraps(function)
        def noted(*arguments: P.args, **keywords: P.kwargs) -> T:
            try:
                value = function(*arguments, **keywords)
                if check is not None:
                    check(value)
                return value
            except Exception as error:
                self.add_note(error)
                raise

        return noted

    def coroutine(self, function: Async[P, T]) -> Async[P, T]:
        """Return the async function with the note on its errors."""

        @wraps(function)
        async def noted(*arguments: P.args, **keywords: P.kwargs) -> T:
            try:
                return await function(*arguments, **keywords)
            except Exception as error:
                self.add_note(error)
                raise

        return noted

    def functions(self, value: T) -> T:
        """Return an object with the public names of `value`, and the note on their errors."""
        public = {name: getattr(value, name) for name in dir(value) if not name.startswith("_")}
        noted = {name: self.function(one) if callable(one) else one for name, one in public.items()}
        return cast("T", SimpleNamespace(**noted))

    @contextmanager
    def loading(self, what: str = "", *passes: type[Exception]) -> Iterator[None]:
        """Turn an error into a `PluginError` that says what to do. An error among `passes` only
        gets a note."""
        try:
            yield
        except PluginError:
            raise
        except passes as error:
            self.add_note(error)
            raise
        except Exception as error:
            raise PluginError(
                f"{self.note}{what} failed: {error!r}; repair or uninstall the plugin, or leave it "
                "out (RELIABLE_CHANNEL_PLUGINS=none)"
            ) from error

    def at_load(
        self, call: Callable[..., T], offered: Mapping[str, object], *passes: type[Exception]
    ) -> T:
        """Call a function as a part of loading, and warn if it blocks."""
        began_s = perf_counter()
        with self.loading("", *passes):
            value = call(**offered)
        if (took_s := perf_counter() - began_s) >= SLOW_S:
            warnings.warn(f"{self.note} took {took_s:.1f} s; it must not block", RuntimeWarning, 2)
        return value

    def bound(self, function: Callable[..., T], offers: Sequence[str]) -> Callable[..., T]:
        """Return a function that takes all that is offered, and passes on what the given one names.

        Raises:
            PluginError: the given one is not a function, or takes arguments that are not offered.
        """
        if not callable(function):
            raise PluginError(f"{self.note} must be a function (got {SHORT.repr(function)})")
        found = inspect.signature(function).parameters.values()
        takes_all = any(one.kind is one.VAR_KEYWORD for one in found)
        named = [one for one in found if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        needed = [one.name for one in named if one.default is one.empty]
        if lacking := sorted(set(needed).difference(offers)):
            can_take = ", ".join(offers)
            raise PluginError(
                f"{self.note} takes the arguments {', '.join(lacking)}, which the caller does not "
                f"pass; the function can take {can_take}"
            )
        takes = [name for name in offers if takes_all or name in [one.name for one in named]]
        call = self._traced(function) if os.environ.get(TRACE, "") not in ("", "0") else function
        return lambda **offered: call(**{name: offered[name] for name in takes})

    def _traced(self, function: Callable[..., T]) -> Callable[..., T]:
        def traced(**taken: object) -> T:
            show = partial(print, end="", file=sys.stderr, flush=True)
            arguments = ", ".join(f"{name}={self.shown(value)}" for name, value in taken.items())
            show(f"{self.note}({arguments})")  # before the call, because it may hang
            began_s, said = perf_counter(), "raised"
            try:
                value = function(**taken)
                said = SHORT.repr(value)
                return value
            finally:
                show(f" -> {said} in {1000 * (perf_counter() - began_s):.2f} ms\n")

        return traced
