"""Declarations of options, with limits, unit and text in the annotation of a dataclass field.

    retry_interval_ms: Annotated[int, Bound(1), Unit("ms"), Doc("Wait before a retry.")] = 30_000

The declaration checks a value, and is the source of the flag's help and the row in the reference.
`declared` returns the declarations of a dataclass, and `check` applies them. The type of a value is
also checked, for numbers, switches, texts, paths, `Literal` and dataclasses. An option of another
type needs a `Fits` in its annotation. `None` and `UNSET` are allowed if the type names them.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
UNITS: Final = ("bytes", "messages", "ms", "s")
"""Units that need no `Unit` if the name of the option ends with them."""

Problem = Callable[[object], str | None]
"""Function that returns a description of valid values, such as `at least 1`, for an invalid value.
The function returns None for a valid value."""


class UnsetType(Enum):
    """Type of the value `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return self.name


UNSET: Final = UnsetType.UNSET
"""Value of an option that was not given, if None or a number would have a meaning."""


def known(value: T | UnsetType, default: T) -> T:
    """Return the value, or the default if the value was not given."""
    return default if isinstance(value, UnsetType) else value


@dataclass(frozen=True, slots=True)
class Bound:
    """Smallest and largest value of a whole number."""

    least: int
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """Unit of a number, if the option's name does not end with the unit (see `UNITS`)."""

    name: str


@dataclass(frozen=True, slots=True)
class Doc:
    """Description of an option. Line breaks count as spaces."""

    text: str


@dataclass(frozen=True, slots=True)
class Fits:
    """Separate check of an option's value. `allowed` describes the values for which `fits` returns
    True."""

    allowed: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Like:
    """Reference to the declaration of another class, for an option of the same name or called
    `name`."""

    kind: "type[DataclassInstance]"
    name: str = ""


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


POSITIVE: Final = Fits("positive", lambda value: _is_number(value) and value > 0)
SHARE: Final = Fits("a share from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1)
SHARE_BELOW_1: Final = Fits(
    "a share from 0 to below 1", lambda value: _is_number(value) and 0 <= value < 1
)
_TEXT: Final = Fits("a text", lambda value: isinstance(value, str))
_PATH: Final = Fits("the path of a file", lambda value: isinstance(value, (str, Path)))
_NUMBER: Final = Fits("a number", _is_number)


@dataclass(frozen=True, slots=True)
class Declared:
    """Declaration of one option of a dataclass."""

    kind: Any
    """Type that the value is parsed to, such as `bool`, `int`, `float`, `str`, `Path` or a
    `Literal`. The type is a dataclass for a group of options, and None for other objects."""
    default: object
    """Default value, or `dataclasses.MISSING` if the option is required."""
    unit: str
    doc: str
    problem: Problem

    def check(self, name: str, value: object) -> None:
        """Check a value against the declaration of its option.

        Raises:
            ValueError: it is not allowed; the text names the option and what is.
        """
        if (must_be := self.problem(value)) is not None:
            raise ValueError(f"`{name}` must be {must_be} (got {value!r})")


@cache
def declared(kind: "type[DataclassInstance]") -> Mapping[str, Declared]:
    """Return the options that a dataclass declares, by name.

    Raises:
        TypeError: an option has a type that needs `Fits`.
    """
    hints = get_type_hints(kind, include_extras=True)
    found = {}
    for one in fields(kind):
        if get_origin(hints[one.name]) is Annotated:
            default = one.default
            if one.default_factory is not MISSING:
                default = one.default_factory()
            found[one.name] = _declared(kind, one.name, hints[one.name], default)
    return found


def check(options: "DataclassInstance") -> None:
    """Check every option of a dataclass.

    Raises:
        ValueError: a value is not allowed; the text names the option and what is.
    """
    for name, option in declared(type(options)).items():
        option.check(name, getattr(options, name))


def _declared(
    owner: "type[DataclassInstance]", name: str, hint: object, default: object
) -> Declared:
    kind, *_ = get_args(hint)
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    marks = _marks(hint, name)
    fits = next((mark for mark in marks if isinstance(mark, Fits)), None)
    bound = next((mark for mark in marks if isinstance(mark, Bound)), None)
    problem = _problem(kinds, fits, bound)
    if problem is None:
        raise TypeError(
            f"the option {owner.__name__}.{name} has the type {kind}, which needs a mark `Fits` "
            "that checks its values"
        )
    return Declared(
        _settable(kinds),
        default,
        next((mark.name for mark in marks if isinstance(mark, Unit)), _unit_in(name)),
        next((" ".join(mark.text.split()) for mark in marks if isinstance(mark, Doc)), ""),
        problem,
    )


def _unit_in(name: str) -> str:
    """Return the unit that ends a name, such as `ms`."""
    return next((unit for unit in UNITS if name.endswith(f"_{unit}")), "")


def _marks(hint: object, name: str) -> list[object]:
    """Return what stands in an annotation, before what the annotation that it is like has."""
    marks = list(get_args(hint)[1:])
    for like in [mark for mark in marks if isinstance(mark, Like)]:
        other = like.name or name
        marks += _marks(get_type_hints(like.kind, include_extras=True)[other], other)
    return marks


def _settable(kinds: tuple[Any, ...]) -> Any:
    for kind in kinds:
        if get_origin(kind) is Literal or is_dataclass(kind):
            return kind
    return next((kind for kind in (bool, int, float, Path, str) if kind in kinds), None)


def _problem(kinds: tuple[Any, ...], fits: Fits | None, bound: Bound | None) -> Problem | None:
    allowed = (NoneType, UnsetType, Mapping)
    absent = tuple(one for kind in kinds if (one := get_origin(kind) or kind) in allowed)
    problem = _problem_with(fits) if fits else _problem_of(_settable(kinds), bound)
    if not absent or problem is None:
        return problem
    given = problem
    return lambda value: None if isinstance(value, absent) else given(value)


def _problem_of(kind: Any, bound: Bound | None) -> Problem | None:
    if kind is bool:
        return _problem_with(Fits("True or False", lambda value: isinstance(value, bool)))
    if kind is int:
        return _whole_number(bound)
    if get_origin(kind) is Literal:
        *others, last = map(repr, words := get_args(kind))
        return _problem_with(Fits(f"{', '.join(others)} or {last}", words.__contains__))
    if isinstance(kind, type) and is_dataclass(kind):
        return _problem_with(Fits(f"a {kind.__name__}", lambda value: isinstance(value, kind)))
    fits = {float: _NUMBER, Path: _PATH, str: _TEXT}.get(kind)
    return None if fits is None else _problem_with(fits)


def _problem_with(check: Fits) -> Problem:
    return lambda value: None if check.fits(value) else check.allowed


def _whole_number(bound: Bound | None) -> Problem:
    least, most = (bound.least, bound.most) if bound else (None, None)

    def problem(value: object) -> str | None:
        if not isinstance(value, int) or isinstance(value, bool):
            return "a whole number"
        if (least is not None and value < least) or (most is not None and value > most):
            return f"at least {least}" if most is None else f"between {least} and {most}"
        return None

    return problem
