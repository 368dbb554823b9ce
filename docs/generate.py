"""Write docs/reference.md from the docstrings of options, events and errors (`make docs`)."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from reliable_channel import diagnostics, errors, events
from reliable_channel.config import flat
from reliable_channel.options import GROUPS, ChannelOptions
from reliable_channel.sds.declared import declared

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PAGE = Path(__file__).with_name("reference.md")


def page() -> str:
    """The text of the page."""
    return "\n".join([*_head(), *_options(), *_events(), *_errors()]) + "\n"


def _head() -> Iterator[str]:
    yield "# Options, events, errors"
    yield ""
    yield "From the docstrings, by `make docs`. Further pages of the reference:"
    yield "[channels](api/channel.md), [plugin interfaces](api/spi.md), [`waku`](api/waku.md),"
    yield "[Status bots](api/status.md) and [commands](api/commands.md). Other names are private."


def _options() -> Iterator[str]:
    yield from ("", "## Options", "")
    yield "Keyword arguments of `ReliableChannel`, fields of `ChannelOptions`, and flags of the"
    yield "command line (`retry_interval_ms` is `--retry-interval-ms`). Four are groups: `bloom`,"
    yield "`limits`, `rate_limit` and `repair`."
    yield from _table(ChannelOptions, "")
    for group, kind in GROUPS.items():
        yield from ("", f"### {kind.__name__}", "")
        yield f"Options of the group `{group}`: `{group}={kind.__name__}(…)`, the table"
        yield f"`[channel.{group}]` of a TOML file, and flags that begin with"
        yield f"`--{group.replace('_', '-')}-`."
        yield from _table(kind, f"{group}_")


def _table(kind: "type[DataclassInstance]", prefix: str) -> Iterator[str]:
    """A row an option."""
    defaults = flat(ChannelOptions())
    yield from ("", "| option | default | meaning |", "|---|---|---|")
    for name, option in declared(kind).items():
        value = defaults.get(prefix + name)
        if name in GROUPS:
            value = f"[below](#{GROUPS[name].__name__.lower()})"
        is_number = isinstance(value, int) and not isinstance(value, bool)
        default = f"{value:,} {option.unit}".rstrip() if is_number else str(value)
        yield f"| `{name}` | {default} | {option.doc} |"


def _events() -> Iterator[str]:
    yield from ("", "## Events", "")
    yield "Events of `channel.events()` that an application needs (`reliable_channel.events`). In"
    yield "brackets: the name in journals and in `peer`."
    yield from _kinds(get_args(events.Event))
    yield from ("", "## Diagnostics", "")
    yield "The other events of `channel.events()` (`reliable_channel.diagnostics`)."
    yield from _kinds(get_args(diagnostics.Diagnostic))


def _kinds(kinds: tuple[Any, ...]) -> Iterator[str]:
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        yield from ("", f"### {kind.__name__} (`{kind.wire_name}`)", "", _first(kind), "")
        of_field = _texts(kind)
        for field in fields(kind):
            text = f": {of_field[field.name]}" if field.name in of_field else ""
            yield f"- `{field.name}`{text}"


def _errors() -> Iterator[str]:
    yield from ("", "## Errors", "", "```")
    yield inspect.cleandoc(errors.__doc__ or "").split("\n\n", 1)[1]
    yield from ("```", "")
    for name in errors.__all__:
        yield f"- `{name}`: {_first(getattr(errors, name))}"


def _texts(kind: type) -> dict[str, str]:
    """The texts below the fields of a class, each one paragraph."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    found = {}
    for statement, below in pairwise(body.body if isinstance(body, ast.ClassDef) else ()):
        match statement, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
    return found


def _first(kind: type) -> str:
    return " ".join(inspect.cleandoc(kind.__doc__ or "").split())


if __name__ == "__main__":
    PAGE.write_text(page())
