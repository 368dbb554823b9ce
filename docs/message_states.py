"""Write docs/message-states.md from the table of message states (`make docs`)."""

import inspect
from collections.abc import Iterator
from pathlib import Path

from reliable_channel.sds import states
from reliable_channel.sds.states import TRANSITIONS, State, Trigger

PAGE = Path(__file__).with_name("message-states.md")


def page() -> str:
    """The text of the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# The states of a message"
    yield ""
    yield "`make docs` writes this page from the core's rules, `reliable_channel/sds/states.py`."
    title, _, essay = inspect.cleandoc(states.__doc__ or "").partition("\n\n")
    yield from ("", title, "", essay)
    yield from (
        "",
        "## States",
        "",
        "| state | meaning | messages that refer to it wait | it is searched | bytes are here |",
    )
    yield "|---|---|---|---|---|"
    for state in State:
        marks = (state.is_awaited, state.is_searched, state.is_here)
        yes = " | ".join("yes" if mark else "no" for mark in marks)
        yield f"| {state.value} | {state.__doc__} | {yes} |"
    yield from (
        "",
        "## Transitions",
        "",
        "| event | what happens to the message (it) | state before | state after |",
        "|---|---|---|---|",
    )
    for event in Trigger:
        for after in State:
            before = [s for s in State if TRANSITIONS.get((s, event)) is after and s is not after]
            if event is Trigger.CYCLE and after is State.PARKED:
                before = [State.PARKED]
            if before:
                sources = ", ".join(state.value for state in before)
                yield f"| {_name(event)} | {event.value} | {sources} | {after.value} |"
    yield ""
    yield "A reference changes nothing if the table has no row for the message's state. Each other"
    yield "event without a row for the state is illegal: in tests and simulations the event raises"
    yield "`IllegalTransition`."


def _name(event: Trigger) -> str:
    return event.name.lower().replace("_", " ")


if __name__ == "__main__":
    PAGE.write_text(page())
