"""Picture of some messages' causal DAG: a lane for each sender, in log order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from .dag import Said, direct
from .lines import time_text
from .plots import COLOURS

MAX_DRAWN: Final = 60
"""Maximum number of messages in a picture. More would show nothing."""
_STEP, _LANE, _TOP, _RADIUS = 22, 46, 26, 5
_LETTER: Final = 7
_MAX_LETTERS: Final = 24
_TICK: Final = 10
"""Messages from one time on the axis to the next."""


def draw_dag(said: Sequence[Said]) -> str:
    """Return an SVG of messages in log order, with the references that no other one implies.

    A reference has the colour of the referring message. A dashed stub is a reference to a message
    that is not shown. A ring marks a message without a shown reference to it.
    """
    order = [each.message_id for each in said]
    references = {each.message_id: set(each.references) for each in said}
    drawn = direct(references, order)
    lanes = {sender: i for i, sender in enumerate(sorted({each.sender_id for each in said}))}
    names = {sender: _short(sender) for sender in lanes}
    left = 20 + _LETTER * max(map(len, names.values()), default=0) + _STEP
    at = {
        each.message_id: (left + i * _STEP, _TOP + lanes[each.sender_id] * _LANE + _LANE // 2)
        for i, each in enumerate(said)
    }
    width, bottom = left + len(said) * _STEP + 10, _TOP + len(lanes) * _LANE
    parts = [_head(width, bottom + 34, f"{len(said)} messages and what they refer to")]
    for sender, lane in lanes.items():
        y = _TOP + lane * _LANE + _LANE // 2
        parts.append(f'<line x1="{left - 12}" y1="{y}" x2="{width}" y2="{y}" stroke="#e8e8e8"/>')
        parts.append(f'<text x="8" y="{y + 4}" fill="{_colour(lane)}">{names[sender]}</text>')
    for each in said:
        colour = _colour(lanes[each.sender_id])
        parts += _references(each, drawn[each.message_id], references, at, colour)
    heads = set(order) - set[str]().union(*references.values())
    for each in said:
        parts.append(_message(each, at[each.message_id], lanes[each.sender_id], heads))
    parts += _times(said, at, bottom)
    return "\n".join([*parts, "</svg>"])


def _head(width: int, height: int, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12" role="img">'
        f"<title>{title}</title>"
    )


def _references(
    each: Said,
    drawn: set[str],
    references: dict[str, set[str]],
    at: dict[str, tuple[int, int]],
    colour: str,
) -> Iterator[str]:
    x, y = at[each.message_id]
    for reference in sorted(drawn, key=lambda other: at[other]):
        from_x, from_y = at[reference]
        # A reference past others in its own lane goes around them.
        bend = -_LANE * 0.45 if from_y == y and x - from_x > _STEP else 0
        middle = (x + from_x) / 2
        yield (
            f'<path d="M{from_x} {from_y}C{middle} {from_y + bend} {middle} {y + bend} {x} {y}" '
            f'fill="none" stroke="{colour}" stroke-opacity="0.6"/>'
        )
    if references[each.message_id] - references.keys() and not drawn:
        yield (
            f'<path d="M{x - _STEP * 0.8} {y - _LANE * 0.3}L{x} {y}" stroke="#808080" '
            'stroke-dasharray="3 2"/>'
        )


def _message(each: Said, at: tuple[int, int], lane: int, heads: set[str]) -> str:
    x, y = at
    ring = ""
    if each.message_id in heads:
        ring = f'<circle cx="{x}" cy="{y}" r="{_RADIUS + 4}" fill="none" stroke="#1a1a1a"/>'
    about = f"{each.message_id}\n{each.sender_id}, {_time(each.at_ms)}"
    return (
        f'{ring}<circle cx="{x}" cy="{y}" r="{_RADIUS}" fill="{_colour(lane)}">'
        f"<title>{escape(about)}</title></circle>"
    )


def _times(said: Sequence[Said], at: dict[str, tuple[int, int]], bottom: int) -> Iterator[str]:
    for each in said[::_TICK]:
        x = at[each.message_id][0]
        yield (
            f'<path d="M{x} {bottom}v6" stroke="#606060"/>'
            f'<text x="{x - 4}" y="{bottom + 20}" fill="#606060">{_time(each.at_ms)}</text>'
        )


def _short(sender_id: str) -> str:
    cut = sender_id if len(sender_id) <= _MAX_LETTERS else f"{sender_id[: _MAX_LETTERS - 1]}…"
    return escape(cut)


def _time(at_ms: int) -> str:
    return time_text(at_ms, "%H:%M:%S")


def _colour(lane: int) -> str:
    return COLOURS[lane % len(COLOURS)]
