"""A view as rows of characters: lanes of participants, dots of messages, gaps, arrows, lamps."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from rich.style import Style
from rich.text import Text

from reliable_channel.terminal_text import printable, printable_name

from ..explaining import MessageView
from ..model import PLAUSIBLE_MS, View
from ..values import LAMPS, Gap, Message, Stage

NAME_WIDTH: Final = 14
DOTS: Final = {
    Stage.WAITING: ("·", "grey62"),
    Stage.SENT: ("○", "yellow"),
    Stage.HELD: ("◐", "dark_orange"),
    Stage.HELD_BY_ALL: ("●", "green"),
    Stage.FAILED: ("✗", "bold red"),
}
_WORST: Final = (Stage.FAILED, Stage.WAITING, Stage.SENT, Stage.HELD, Stage.HELD_BY_ALL)
_BARS: Final = "▁▂▃▄▅▆▇█"
MISSING: Final = ("░", "red")
LOST: Final = ("▓", "red")
AFTER: Final = "cyan"
BEFORE: Final = "magenta"
MAX_LAMPS: Final = 5
"""Rows."""
MAX_GAPS: Final = 4
"""Rows."""


class Window(NamedTuple):
    """The part of time that is seen."""

    until_ms: int
    """The right edge; all is shown as it was then."""
    span_ms: int
    columns: int

    def column(self, at_ms: int) -> int:
        """Where a time is; outside of 0 to `columns` - 1 it is not seen."""
        return self.columns - 1 - (self.until_ms - at_ms) * self.columns // self.span_ms

    def time(self, column: int) -> int:
        """When a column begins."""
        return self.until_ms - (self.columns - 1 - column) * self.span_ms // self.columns


@dataclass(slots=True)
class Picture:
    """The lanes, drawn; which message is where."""

    rows: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)
    """By lane and column, a character and its style."""
    messages: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """By lane and column, the numbers of messages."""

    def row(self, lane: int, name: str, columns: int) -> Text:
        """One lane."""
        text = Text(no_wrap=True)
        shown = printable_name(name)
        text.append(cut(shown, NAME_WIDTH - 1).ljust(NAME_WIDTH), "bold")
        for column in range(columns):
            character, style = self.rows.get((lane, column), (" ", ""))
            text.append(character, style or None)
        return text


def draw(view: View, window: Window, selected: int | None) -> Picture:
    """Draw what a window shows."""
    picture = Picture()
    for gap in view.gaps.values():
        if gap.since_ms <= window.until_ms:
            is_open = gap.until_ms is None or gap.until_ms > window.until_ms
            end = window.until_ms if is_open else gap.until_ms or 0
            look = LOST if gap.is_lost and not is_open else MISSING
            first, last = max(0, window.column(gap.since_ms)), window.column(end)
            for column in range(first, min(last, window.columns - 1) + 1):
                picture.rows[gap.lane, column] = look
    stages: dict[tuple[int, int], list[Stage]] = {}
    for message in _seen(view, window):
        place = message.lane, window.column(message.at_ms)
        standing = view.standing(message, window.until_ms)
        if standing is not None and 0 <= place[1] < window.columns:
            stages.setdefault(place, []).append(standing.stage)
            picture.messages.setdefault(place, []).append(message.number)
    for place, found in stages.items():
        dot, style = DOTS[min(found, key=_WORST.index)]
        more = str(len(found)) if len(found) < 10 else "+"
        picture.rows[place] = (dot if len(found) == 1 else more, style)
    message_selected = None if selected is None else view.messages.get(selected)
    if message_selected is not None:
        _arrows(view, window, picture, message_selected)
    return picture


def _seen(view: View, window: Window) -> Iterator[Message]:
    first_ms = window.time(0)
    for message in reversed(view.messages.values()):
        if message.at_ms < first_ms - PLAUSIBLE_MS:  # those before it are older, but for clocks
            return
        if first_ms <= message.at_ms <= window.until_ms:
            yield message


def _arrows(view: View, window: Window, picture: Picture, message: Message) -> None:
    """Draw what a message follows, and what follows it; a dot is never covered."""
    for number in message.parents:
        if number in view.messages:
            _arrow(window, picture, view.messages[number], message, AFTER)
    for number in message.children:
        child = view.messages.get(number)
        if child is not None and child.at_ms <= window.until_ms:
            _arrow(window, picture, message, child, BEFORE)
    place = message.lane, window.column(message.at_ms)
    if place in picture.rows:
        character, style = picture.rows[place]
        picture.rows[place] = (character, f"{style} reverse")


def _arrow(window: Window, picture: Picture, one: Message, other: Message, style: str) -> None:
    def put(lane: int, column: int, character: str) -> None:
        if (lane, column) not in picture.messages and 0 <= column < window.columns:
            picture.rows[lane, column] = (character, style)

    first, last = window.column(one.at_ms), window.column(other.at_ms)
    for column in range(max(0, first + 1), min(last, window.columns)):
        put(one.lane, column, "─")
    if one.lane != other.lane:
        down = other.lane > one.lane
        put(one.lane, last, "╮" if down else "╯")
        for lane in range(min(one.lane, other.lane) + 1, max(one.lane, other.lane)):
            put(lane, last, "│")
    else:
        put(one.lane, last - 1, "▸")
    for place in ((one.lane, first), (other.lane, last)):
        if place in picture.rows and place in picture.messages:
            character, own = picture.rows[place]
            picture.rows[place] = (character, str(Style.parse(own) + Style(bold=True)))


def head(view: View, at_ms: int, *, is_live: bool, note: str = "") -> Text:
    """The line above all."""
    rate = view.rate(at_ms)
    channels = ", ".join(map(printable_name, sorted(view.channel_ids)[:3])) or "no channel yet"
    messages = sum(lane.sent for lane in view.lanes)
    overhead = "" if rate.overhead is None else f"  {rate.overhead:.2%} of it overhead"
    forgotten = f"  {view.forgotten:,} forgotten" if view.forgotten else ""
    return Text.assemble(
        (channels, "bold"),
        f"  {len(view.lanes):,} participants  {messages:,} messages{forgotten}",
        f"  {size(rate.bytes_per_s)}/s{overhead}  ",
        (clock(at_ms) if view.first_ms is not None else "", "bold"),
        (" live" if is_live else " past", "green" if is_live else "yellow"),
        (f"  {printable(note)}" if note else "", "red"),
        no_wrap=True,
    )


def legend() -> Text:
    """What the characters mean."""
    text = Text(no_wrap=True)
    for stage, (character, style) in DOTS.items():
        text.append(character, style).append(f" {stage.value}  ", "dim")
    text.append(MISSING[0] * 2, MISSING[1]).append(" missing  ", "dim")
    return text.append(LOST[0] * 2, LOST[1]).append(" lost", "dim")


def lamps(view: View, at_ms: int) -> Text:
    """Send, receive and Store of each node, those that do not work first."""
    rows = []
    for (lane, node), services in view.lamps.items():
        states = [services[lamp].at(at_ms) for lamp in LAMPS]
        bad = sum(state is not None and not state[0] for state in states)
        row = Text(no_wrap=True)
        where = printable_name(view.name(lane)) + (f" at {printable(node)}" if node else "")
        row.append(cut(where, NAME_WIDTH * 2 - 1).ljust(NAME_WIDTH * 2 if node else NAME_WIDTH))
        for lamp, state in zip(LAMPS, states, strict=True):
            style = "grey50" if state is None else "green" if state[0] else "bold red"
            row.append("○ " if state is None else "● ", style).append(f"{lamp.value}  ", "dim")
        row.append("; ".join(printable(state[1]) for state in states if state and not state[0]))
        rows.append((-bad, view.name(lane), row))
    rows.sort(key=lambda each: each[:2])
    shown = [row for _, _, row in rows[:MAX_LAMPS]]
    if len(rows) > MAX_LAMPS:
        working = sum(not bad for bad, _, _ in rows[MAX_LAMPS:])
        shown.append(Text(f"and {len(rows) - MAX_LAMPS} more, {working} without a fault", "dim"))
    return Text("\n").join(shown)


def missing(view: View, at_ms: int) -> Text:
    """What participants lack at a time, and where they ask: of each one, the oldest gap."""
    oldest: dict[int, tuple[Gap, int]] = {}
    for gap in view.gaps.values():
        if gap.since_ms <= at_ms and (gap.until_ms is None or gap.until_ms > at_ms):
            first, count = oldest.get(gap.lane, (gap, 0))
            oldest[gap.lane] = first, count + 1
    rows = [
        Text.assemble(
            (f"{printable_name(view.lanes[lane].name)} misses {count:,}", "red"),
            f", since {clock(gap.since_ms)} {printable(gap.message_id[:8])}; asked are: ",
            printable(gap.asked(at_ms)),
        )
        for lane, (gap, count) in list(oldest.items())[:MAX_GAPS]
    ]
    if len(oldest) > MAX_GAPS:
        rows.append(Text(f"and {len(oldest) - MAX_GAPS} more participants", "dim"))
    return Text("\n", no_wrap=True, overflow="ellipsis").join(rows)


def slider(view: View, at_ms: int, columns: int) -> Text:
    """Traffic over all time, with the time that is shown."""
    first, last = view.first_ms or 0, max(view.last_ms, (view.first_ms or 0) + 1)
    heights = [0] * columns
    width_ms = (last - first) / columns
    for second, total, _ in view.seconds():  # in a short session, a second is several columns
        begin = min(int((second * 1000 - first) / width_ms), columns - 1)
        end = max(begin + 1, int((second * 1000 + 1000 - first) / width_ms))
        for column in range(max(begin, 0), min(end, columns)):
            heights[column] += total
    most = max(heights, default=0) or 1
    here = (at_ms - first) * (columns - 1) // (last - first)
    text = Text(no_wrap=True)
    for column, height in enumerate(heights):
        bar = _BARS[min(len(_BARS) - 1, height * len(_BARS) // most)] if height else "·"
        text.append(bar, "reverse yellow" if column == here else "blue")
    return text


def detail(explanation: MessageView) -> Text:
    """A message: id, hint, its holders, why it is late, and its history."""
    text = Text()

    def row(name: str, value: str) -> None:
        text.append(f"{name:<9}", "dim").append(f"{value}\n")

    e = explanation
    text.append(printable(e.message_id), "bold")
    text.append(f"\nof {printable_name(e.sender)} at {clock(e.at_ms)}, {size(e.size_bytes)}")
    text.append(f", Lamport timestamp {e.lamport_timestamp}\n")
    row("hint", e.hint or "not known")
    follows = ", ".join(f"{printable(i[:8])} of {printable_name(n)}" for _, i, n in e.after)
    row("follows", f"{follows or 'nothing that was seen'} ({e.references} references)")
    row("has it", f"{len(e.has)} of {e.others}: {names(e.has)}")
    if e.has_not:
        row("not known", names(e.has_not))
    for delay in e.delays:
        if delay.why:
            took = "" if delay.delay_ms is None else f" {delay.delay_ms / 1000:.1f} s late:"
            text.append(f"{printable_name(delay.participant)}{took} ", "yellow")
            text.append(f"{printable(delay.why)}\n")
    for step in e.history:
        text.append(f"{clock(step.at_ms)}  ", "dim").append(f"{printable(step.what)}\n")
    return text


def names(found: list[str], most: int = 12) -> str:
    """Names of participants, cut after some."""
    shown = ", ".join(map(printable_name, found[:most])) or "none"
    return f"{shown} and {len(found) - most} more" if len(found) > most else shown


def clock(at_ms: int) -> str:
    """A time of day, in UTC."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    except (OverflowError, ValueError, OSError):  # a journal may say anything
        return str(at_ms)


def size(size_bytes: float) -> str:
    """A number of bytes."""
    for unit in ("B", "kB", "MB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} GB"


def cut(text: str, width: int) -> str:
    """Text of at most that width."""
    return text if len(text) <= width else text[: width - 1] + "…"
