"""One guard around all code that a plugin or the application provides.

A provided function may raise anything, return anything, or take for ever. The guard turns each of
these into one `PluginError` with one form, `<owner>: <what> <what was wrong>`:

    plugin 'pigeons': transport 'pigeon' failed: KeyError('loft')
    plugin 'pigeons': publish of the transport must return None (got 5)
    the application: retry_policy must return a whole number of milliseconds from 1 (got 0)

Errors that the contract of a function names pass unchanged.
"""

import inspect
import os
import sys
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from reprlib import Repr
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

import anyio

from .errors import PluginError

TRACE: Final = "RELIABLE_CHANNEL_TRACE_PLUGINS"
SLOW_S: Final = 1.0
"""A call that takes this long is reported: it blocks everything else in its thread."""
HANGS_S: Final = 60.0
"""A call that exceeds this is treated as hung and cancelled, so another transport or a retry can
proceed."""
_short: Final = Repr()
_short.maxstring = _short.maxother = 80

P = ParamSpec("P")
T = TypeVar("T")
Errors = tuple[type[Exception], ...]


class Contract(NamedTuple):
    """What a function must return: a test, and the words for an error text."""

    fits: Callable[[Any], bool]
    must_be: str
    kind: type | None = None


def instance(kind: type) -> Contract:
    """An instance of a class or protocol; a class itself is none."""

    def fits(value: object) -> bool:
        return isinstance(value, kind) and not inspect.isclass(value)

    name = kind.__name__
    if kind.__module__ != "builtins":
        name = f"{'an' if name[0] in 'AEIO' else 'a'} {name}"
    return Contract(fits, name, kind)


NOTHING: Final = Contract(lambda value: value is None, "None")
FUNCTION: Final = Contract(callable, "a function")


@dataclass(frozen=True, slots=True)
class Guard:
    """Calls the code of one owner and names the owner in every error."""

    owner: str
    """`plugin 'pigeons'`, or `the application`."""

    def failed(self, what: str, error: Exception) -> PluginError:
        """The error for a call that raised; raise it `from` the cause."""
        return PluginError(f"{self.owner}: {what} failed: {error!r}")

    def wrong(
        self, what: str, value: object, contract: Contract, verb: str = "must return"
    ) -> PluginError:
        """The error for a value that breaks the contract."""
        lacks = "" if contract.kind is None else _lacks(value, contract.kind)
        return PluginError(
            f"{self.owner}: {what} {verb} {contract.must_be} (got {shown(value)}{lacks})"
        )

    @contextmanager
    def watching(self, what: str, passes: Errors = ()) -> Iterator[None]:
        """Raise `PluginError` for every error of the block except `passes`."""
        try:
            yield
        except Exception as error:
            if isinstance(error, (PluginError, *passes)):
                raise
            raise self.failed(what, error) from error

    def checked(self, what: str, value: T, contract: Contract, verb: str = "must return") -> T:
        """Return the value.

        Raises:
            PluginError: it breaks the contract.
        """
        if not contract.fits(value):
            raise self.wrong(what, value, contract, verb)
        return value

    def function(
        self, what: str, function: Callable[P, T], contract: Contract, passes: Errors = ()
    ) -> Callable[P, T]:
        """The same function under guard."""
        fits = contract.fits

        @wraps(function, assigned=(), updated=())
        def guarded(*arguments: P.args, **keywords: P.kwargs) -> T:
            try:
                value = function(*arguments, **keywords)
            except Exception as error:
                if isinstance(error, (PluginError, *passes)):
                    raise
                raise self.failed(what, error) from error
            if not fits(value):
                raise self.wrong(what, value, contract)
            return value

        return guarded

    def coroutine(
        self,
        what: str,
        function: Callable[P, Awaitable[T]],
        contract: Contract,
        passes: Errors = (),
        *,
        hung: type[Exception] | None = None,
    ) -> Callable[P, Awaitable[T]]:
        """The same async function under guard; with `hung`, cancelled after `HANGS_S`."""

        @wraps(function, assigned=(), updated=())
        async def guarded(*arguments: P.args, **keywords: P.kwargs) -> T:
            limit_s = HANGS_S if hung else float("inf")
            with anyio.move_on_after(limit_s), self.watching(what, passes):
                return self.checked(what, await function(*arguments, **keywords), contract)
            raise (hung or TimeoutError)(f"{self.owner}: {what} did not return in {limit_s:g} s")

        return guarded


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
        arguments = ", ".join(f"{name}={_short.repr(value)}" for name, value in taken.items())
        # Printed before the call, so that a call that hangs is visible.
        _print(f"{self.plugin}: {self.what}({arguments})")
        began_s, value = self.now_s(), "raised"
        try:
            value = self.function(**taken)  # type: ignore[assignment]
            return value
        finally:
            took_ms = 1000 * (self.now_s() - began_s)
            _print(f" -> {_short.repr(value)} in {took_ms:.2f} ms\n")


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


def shown(value: object) -> str:
    """A value in short; a coroutine is closed, because nobody will await it."""
    if inspect.iscoroutine(value):
        value.close()
        return "a coroutine"
    return _short.repr(value)


def _print(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)  # noqa: T201 - requested by the user


def _lacks(value: object, kind: type) -> str:
    """Methods of a protocol that a value lacks, for an error text."""
    if not getattr(kind, "_is_protocol", False):
        return ""
    wanted = [name for name in vars(kind) | kind.__annotations__ if not name.startswith("_")]
    lacking = [name for name in wanted if not hasattr(value, name)]
    return f", which lacks {', '.join(lacking)}" if lacking else ""
