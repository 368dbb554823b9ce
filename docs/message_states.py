"""Write docs/message-states.md and its picture from the table of message states (`make docs`)."""

import inspect
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

from reliable_channel.sds import states
from reliable_channel.sds.states import TRANSITIONS, Event, State

PAGE = Path(__file__).with_name("message-states.md")
PICTURE = Path(__file__).with_name("message-states.svg")
_AT: Final = {
    State.UNKNOWN: (110, 300),
    State.QUEUED: (300, 120),
    State.MISSING: (520, 190),
    State.LOST: (520, 385),
    State.PRESUMED: (300, 470),
    State.HISTORIC: (520, 530),
    State.PARKED: (860, 120),
    State.DELIVERED: (860, 280),
    State.EVICTED: (860, 450),
}
"""Centres of the boxes."""
_WIDTH, _HEIGHT, _BOX, _TALL = 960, 600, 136, 54
_NOT_HERE: Final = [s for s in State if not s.is_here and s is not State.EVICTED]
_ELSEWHERE: Final = (20, 50, 620, 530)
"""The frame around them: left, top, right edge and height."""


def page() -> str:
    """The text of the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# The states of a message"
    yield ""
    yield "Written by `make docs` from `reliable_channel/sds/states.py`, which the core obeys."
    title, _, essay = inspect.cleandoc(states.__doc__ or "").partition("\n\n")
    yield from ("", title, "", f"![{title}](message-states.svg)", "", essay)
    yield from (
        "",
        "## States",
        "",
        "| state | | messages that refer to it wait | searched | its bytes are here |",
    )
    yield "|---|---|---|---|---|"
    for state in State:
        marks = (state.is_awaited, state.is_searched, state.is_here)
        yes = " | ".join("yes" if mark else "" for mark in marks)
        yield f"| {state.value} | {state.__doc__} | {yes} |"
    yield from (
        "",
        "## Transitions",
        "",
        "| event | the message … | from | to |",
        "|---|---|---|---|",
    )
    for event in Event:
        for after in State:
            before = [s for s in State if TRANSITIONS.get((s, event)) is after and s is not after]
            if event is Event.CYCLE and after is State.PARKED:
                before = [State.PARKED]
            if before:
                sources = ", ".join(state.value for state in before)
                yield f"| {_name(event)} | {event.value} | {sources} | {after.value} |"
    yield ""
    yield "References to a message in any other state change nothing. Every other pair is illegal:"
    yield "in tests and simulations it raises `IllegalTransition`."


def picture() -> str:
    """The picture as SVG: an arrow for each pair of states, with its events."""
    left, top, right, height = _ELSEWHERE
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12">'
        ),
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
            'markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>'
        ),
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        (
            f'<rect x="{left}" y="{top}" width="{right - left}" height="{height}" rx="12" '
            'fill="#f4f6f8" stroke="#9aa5b1" stroke-dasharray="5 4"/>'
        ),
        f'<text x="{left + 12}" y="{top + 20}" fill="#52606d">not here</text>',
    ]
    shared = {event: after for event in Event if (after := _from_all(event)) is not None}
    lines, labels = [], []
    for event, after in shared.items():
        if after.is_here:
            x, y = _AT[after]
            lines.append(_line((right, y - 16), (x - _BOX / 2, y - 16)))
            labels.append(_label((right + x - _BOX / 2) / 2, y - 16, [event]))
    for (before, after), events in _arrows(shared).items():
        start, end = _AT[before], _AT[after]
        lines.append(_line(_edge(start, end), _edge(end, start)))
        # Not in the middle, where arrows cross.
        at_x, at_y = (a + 0.42 * (b - a) for a, b in zip(start, end, strict=True))
        labels.append(_label(at_x, at_y, events))
    boxes = [_box(state, shared) for state in State]
    return "\n".join([*parts, *lines, *boxes, *labels, "</svg>"]) + "\n"


def _from_all(event: Event) -> State | None:
    """The state to which an event leads from every state that is not here."""
    after = {TRANSITIONS.get((state, event)) for state in _NOT_HERE}
    return after.pop() if len(after) == 1 else None


def _arrows(shared: dict[Event, State]) -> dict[tuple[State, State], list[Event]]:
    """Events by pairs of states; those back to `unknown` are written into the boxes."""
    found: dict[tuple[State, State], list[Event]] = {}
    for (before, event), after in TRANSITIONS.items():
        is_shared = event in shared and before in _NOT_HERE
        if before is not after and after is not State.UNKNOWN and not is_shared:
            found.setdefault((before, after), []).append(event)
    return found


def _box(state: State, shared: dict[Event, State]) -> str:
    x, y = _AT[state]
    fill = "#d9f2e3" if state.is_here else "#fff3cd" if state.is_awaited else "#ffffff"
    to_unknown = [e for e in Event if TRANSITIONS.get((state, e)) is State.UNKNOWN is not state]
    notes = [
        f"{_name(e)}: from any not here" for e, s in shared.items() if s is state and not s.is_here
    ]
    notes += [f"{' / '.join(map(_name, to_unknown))} → unknown"] if to_unknown else []
    texts = [
        f'<text x="{x}" y="{y + 14 + 11 * n}" text-anchor="middle" font-size="9" '
        f'fill="#52606d">{escape(note)}</text>'
        for n, note in enumerate(notes)
    ]
    return (
        f'<rect x="{x - _BOX / 2}" y="{y - _TALL / 2}" width="{_BOX}" height="{_TALL}" rx="6" '
        f'fill="{fill}" stroke="#323f4b"/><text x="{x}" y="{y - 4}" text-anchor="middle" '
        f'font-weight="bold" font-size="14">{state.value}</text>' + "".join(texts)
    )


def _line(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = start, end
    return (
        f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="#444" '
        'marker-end="url(#tip)"/>'
    )


def _label(x: float, y: float, events: list[Event]) -> str:
    text = " / ".join(map(_name, events))
    width = 5.6 * len(text) + 6
    return (
        f'<rect x="{x - width / 2:.0f}" y="{y - 8:.0f}" width="{width:.0f}" height="15" '
        f'fill="white" opacity="0.85"/><text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle" '
        f'font-size="10">{escape(text)}</text>'
    )


def _edge(here: tuple[int, int], there: tuple[int, int]) -> tuple[float, float]:
    """Where the line between two centres leaves the box of the first."""
    dx, dy = there[0] - here[0], there[1] - here[1]
    share = min(_BOX / 2 / abs(dx) if dx else 1, _TALL / 2 / abs(dy) if dy else 1)
    return here[0] + dx * share, here[1] + dy * share


def _name(event: Event) -> str:
    return event.name.lower().replace("_", " ")


if __name__ == "__main__":
    PAGE.write_text(page())
    PICTURE.write_text(picture())
