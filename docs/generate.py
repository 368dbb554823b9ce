"""Write docs/reference.md from the docstrings of options, events and errors (`make docs`)."""

import inspect
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args

from reliable_channel import errors, events
from reliable_channel.options import ChannelOptions, option_texts
from reliable_channel.sds.declared import declared, texts

PAGE = Path(__file__).with_name("reference.md")


def page() -> str:
    """The text of the page."""
    return "\n".join([*_head(), *_options(), *_events(), *_errors()]) + "\n"


def _head() -> Iterator[str]:
    yield "# Reference"
    yield ""
    yield "Made from the docstrings by `make docs`; a test holds it to them."


def _options() -> Iterator[str]:
    yield from ("", "## Options", "")
    yield "Keyword arguments of `ReliableChannel`, fields of `ChannelOptions`, and flags of the"
    yield "command line (`retry_interval_ms` is `--retry-interval-ms`)."
    yield from ("", "| option | default | meaning |", "|---|---|---|")
    of_option = option_texts()
    for name, option in declared(ChannelOptions).items():
        is_number = isinstance(option.default, int) and not isinstance(option.default, bool)
        default = f"{option.default:,} {option.unit}".rstrip() if is_number else str(option.default)
        yield f"| `{name}` | {default} | {of_option[name]} |"


def _events() -> Iterator[str]:
    yield from ("", "## Events", "")
    yield "What `channel.events()` gives; in brackets the name in journals and in `peer`."
    for kind in sorted(get_args(events.Event), key=lambda kind: kind.__name__):
        yield from ("", f"### {kind.__name__} (`{kind.wire_name}`)", "", _first(kind), "")
        of_field = texts(kind)
        for field in fields(kind):
            text = f": {of_field[field.name]}" if field.name in of_field else ""
            yield f"- `{field.name}`{text}"


def _errors() -> Iterator[str]:
    yield from ("", "## Errors", "", "```")
    yield inspect.cleandoc(errors.__doc__ or "").split("\n\n", 1)[1]
    yield from ("```", "")
    for name in errors.__all__:
        yield f"- `{name}`: {_first(getattr(errors, name))}"


def _first(kind: type) -> str:
    return " ".join(inspect.cleandoc(kind.__doc__ or "").split())


if __name__ == "__main__":
    PAGE.write_text(page())
