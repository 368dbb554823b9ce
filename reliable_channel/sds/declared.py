"""Options declared once: default, bounds and unit in the field, the text in the string below it.

From the same declaration a value is checked, a flag of the command line gets its help, and the
reference its row. `declared` gives the declarations of a dataclass, `check` obeys them, and
`texts` reads the texts.
"""

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

OPTION: Final = "option"
"""The key of a field's metadata."""


@dataclass(frozen=True, slots=True)
class Declared:
    """An option."""

    default: Any
    problem: Callable[[Any], str | None]
    """What a wrong value must be, such as `at least 1`; None for a right one."""
    unit: str = ""

    def option(self) -> Any:
        """The field of a dataclass."""
        return field(default=self.default, metadata={OPTION: self})

    def check(self, name: str, value: object) -> None:
        """Check a value.

        Raises:
            ValueError: it is not allowed; the text names the option and what is.
        """
        if (must_be := self.problem(value)) is not None:
            raise ValueError(f"`{name}` must be {must_be} (got {value!r})")


Problem = Callable[[Any], str | None]


def number(default: Any, unit: str, least: int, most: int | None = None) -> Any:
    """A whole number, or None where that is the default; `dataclasses.MISSING` for none."""
    return _option(default, whole_number(least, most), unit)


def positive(default: float, unit: str) -> Any:
    """A number above 0."""
    return _option(default, lambda v: None if _is_number(v) and v > 0 else "positive", unit)


def share(default: float | None, *, of_all: bool = True) -> Any:
    """A part of 1; `of_all` says whether it may be all of it."""
    if of_all:
        return given(default, "a share from 0 to 1", lambda v: _is_number(v) and 0 <= v <= 1)
    return given(default, "a share from 0 to below 1", lambda v: _is_number(v) and 0 <= v < 1)


def word(default: str, words: Sequence[str]) -> Any:
    """One of some words."""
    *others, last = map(repr, words)
    return given(default, f"{', '.join(others)} or {last}", words.__contains__)


def switch(default: bool) -> Any:
    """True or False."""
    return given(default, "True or False", lambda value: isinstance(value, bool))


def given(default: Any, allowed: str, fits: Callable[[Any], bool]) -> Any:
    """Anything that fits, or None where that is the default; `allowed` is what fits."""
    return _option(default, lambda value: None if fits(value) else allowed)


def whole_number(least: int, most: int | None = None) -> Problem:
    """What is wrong with a value that has to be a whole number."""

    def problem(value: Any) -> str | None:
        if not isinstance(value, int) or isinstance(value, bool):
            return "a whole number"
        if value < least or (most is not None and value > most):
            return f"at least {least}" if most is None else f"between {least} and {most}"
        return None

    return problem


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _option(default: Any, problem: Problem, unit: str = "") -> Any:
    if default is None:
        return Declared(None, lambda v: None if v is None else problem(v), unit).option()
    return Declared(default, problem, unit).option()


def declared(kind: type[Any]) -> dict[str, Declared]:
    """The options that a dataclass declares, by name."""
    return {one.name: one.metadata[OPTION] for one in fields(kind) if OPTION in one.metadata}


def check(options: object) -> None:
    """Check every option of a dataclass.

    Raises:
        ValueError: a value is not allowed; the text names the option and what is.
    """
    for name, option in declared(type(options)).items():
        option.check(name, getattr(options, name))


def texts(kind: type[Any]) -> dict[str, str]:
    """The texts that stand below the fields of a class, each one paragraph."""
    tree = next(
        node
        for node in _parsed(kind.__module__).body
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    found = {}
    for statement, below in pairwise(tree.body):
        match statement, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
    return found


@cache
def _parsed(module: str) -> ast.Module:
    """The syntax of a module: `inspect.getsource` would parse it once for each class."""
    return ast.parse(Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8"))
