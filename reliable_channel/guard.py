"""One guard around all code that a plugin or the application provides.

A provided function may raise anything, return anything, or take for ever. The guard turns each of
these into one `PluginError` with one form, `<owner>: <what> <what was wrong>`:

    plugin 'pigeons': transport 'pigeon' failed: KeyError('loft')
    plugin 'pigeons': publish of the transport must return None (got 5)
    the application: retry_policy must return a whole number of milliseconds from 1 (got 0)

Errors that the contract of a function names pass unchanged.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from reprlib import Repr
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from .errors import PluginError

SHORT: Final = Repr()
SHORT.maxstring = SHORT.maxother = 80

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


def shown(value: object) -> str:
    """A value in short; a coroutine is closed, because it is never awaited."""
    if inspect.iscoroutine(value):
        value.close()
        return "a coroutine"
    return SHORT.repr(value)


def _lacks(value: object, kind: type) -> str:
    """Methods of a protocol that a value lacks, for an error text."""
    if not getattr(kind, "_is_protocol", False):
        return ""
    wanted = [name for name in vars(kind) | kind.__annotations__ if not name.startswith("_")]
    lacking = [name for name in wanted if not hasattr(value, name)]
    return f", which lacks {', '.join(lacking)}" if lacking else ""
