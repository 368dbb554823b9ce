"""The view in a terminal, with keyboard and mouse (Textual)."""

from typing import ClassVar, Final

from rich.text import Text
from textual import events, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message as Posted
from textual.widget import Widget
from textual.widgets import Footer, Static

from ..explaining import explain
from ..feeds import Feed
from ..model import View
from .picture import NAME_WIDTH, Picture, Window, detail, draw, head, lamps, legend, missing, slider

REFRESH_S: Final = 0.25
SPANS_MS: Final = tuple(
    seconds * 1000 for seconds in (1, 2, 5, 10, 20, 60, 120, 300, 900, 3_600, 21_600, 86_400)
)
"""Time from edge to edge."""
LONGEST_MS: Final = 120_000
"""That is shown at first."""


class Lanes(Widget):
    """The lanes; a click selects a message."""

    class Chosen(Posted):
        """A place was clicked."""

        def __init__(self, lane: int, column: int) -> None:
            super().__init__()
            self.lane, self.column = lane, column

    first: int = 0
    """The lane at the top."""

    def __init__(self, view: View) -> None:
        super().__init__(id="lanes")
        self._view = view
        self.picture = Picture()

    @property
    def columns(self) -> int:
        """Of time."""
        return max(1, self.size.width - NAME_WIDTH)

    def render(self) -> Text:
        """The lanes that fit."""
        end = self.first + max(1, self.size.height)
        lanes = self._view.lanes[self.first : end]
        rows = (
            self.picture.row(number, lane.name, self.columns)
            for number, lane in enumerate(lanes, self.first)
        )
        return Text("\n", no_wrap=True).join(rows)

    def on_click(self, event: events.Click) -> None:
        """Select."""
        self.post_message(self.Chosen(self.first + event.y, event.x - NAME_WIDTH))

    def on_mouse_scroll_down(self) -> None:
        """Show the lanes below."""
        self.first = max(0, min(self.first + 3, len(self._view.lanes) - self.size.height))
        self.refresh()

    def on_mouse_scroll_up(self) -> None:
        """Show the lanes above."""
        self.first = max(0, self.first - 3)
        self.refresh()


class Slider(Static):
    """All time in one line; a click goes there."""

    class Moved(Posted):
        """A time was clicked: 0 is the first one, 1 the last."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share

    def on_click(self, event: events.Click) -> None:
        """Go to that time."""
        self.post_message(self.Moved(event.x / max(1, self.size.width - 1)))


class WatchApp(App[None]):
    """A channel, watched."""

    TITLE = "reliable-channel watch"
    CSS = """
    #head, #legend, Slider { height: 1; }
    #lamps { height: auto; max-height: 6; margin-bottom: 1; }
    Lanes { height: 1fr; }
    #missing { height: auto; max-height: 5; }
    #detail { height: auto; max-height: 50%; border-top: solid $primary; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", "Earlier message"),
        Binding("right", "step(1)", "Later"),
        Binding("up", "lane(-1)", "Lane", show=False),
        Binding("down", "lane(1)", "Lane", show=False),
        Binding("shift+up,k", "scroll(-1)", "Scroll", show=False),
        Binding("shift+down,j", "scroll(1)", "Scroll", show=False),
        Binding("pageup,comma", "move(-1)", "Back in time"),
        Binding("pagedown,full_stop", "move(1)", "Forward"),
        Binding("end,l", "live", "Live"),
        Binding("home", "begin", "Begin"),
        Binding("plus,equals_sign", "zoom(-1)", "Zoom in"),
        Binding("minus", "zoom(1)", "Zoom out"),
        Binding("escape", "unselect", "Close", show=False),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, view: View, feed: Feed) -> None:
        super().__init__()
        self.view = view
        self.selected: int | None = None
        """Number of a message."""
        self.past_ms: int | None = None
        """The time that is shown; None is now."""
        self.span_ms = 20_000
        self.failure: Exception | None = None
        """Why the feed ended."""
        self._feed = feed
        self._has_chosen_span = False

    @property
    def at_ms(self) -> int:
        """The time that is shown."""
        return self.view.last_ms if self.past_ms is None else self.past_ms

    @property
    def window(self) -> Window:
        """The part of time that is seen."""
        return Window(self.at_ms, self.span_ms, self.query_one(Lanes).columns)

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield Static(id="head", markup=False)
        yield Static(id="lamps", markup=False)
        yield Lanes(self.view)
        yield Static(id="missing", markup=False)
        with VerticalScroll(id="detail", can_focus=False):
            yield Static(id="message", markup=False)
        yield Slider(markup=False)
        yield Static(legend(), id="legend", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to read."""
        self._read()
        self.set_interval(REFRESH_S, self.show)

    @work(exclusive=True)
    async def _read(self) -> None:
        try:
            await self._feed(self.view)
        except Exception as error:  # shown; what was read stays to be looked at
            self.failure = error

    def show(self) -> None:
        """Draw all anew."""
        if not self.query(Lanes):
            return  # the timer may ring once more while the screen is taken down
        view, lanes = self.view, self.query_one(Lanes)
        if not self._has_chosen_span and view.first_ms is not None:
            # A short session is seen whole.
            whole = view.last_ms - view.first_ms
            self.span_ms = next((span for span in SPANS_MS if whole <= span), LONGEST_MS)
            self.span_ms = min(self.span_ms, LONGEST_MS)
        note = "" if self.failure is None else f"{self.failure}"
        is_live = self.past_ms is None
        self.query_one("#head", Static).update(head(view, self.at_ms, is_live=is_live, note=note))
        self.query_one("#lamps", Static).update(lamps(view, self.at_ms))
        self.query_one("#missing", Static).update(missing(view, self.at_ms))
        lanes.picture = draw(view, self.window, self.selected)
        lanes.refresh()
        track = self.query_one(Slider)
        track.update(slider(view, self.at_ms, max(1, track.size.width)))
        message = None if self.selected is None else view.messages.get(self.selected)
        self.query_one("#detail").display = message is not None
        if message is not None:
            self.query_one("#message", Static).update(detail(explain(view, message)))

    def on_lanes_chosen(self, event: Lanes.Chosen) -> None:
        """Select the nearest message in a lane."""
        places = self.query_one(Lanes).picture.messages
        near = [place for place in places if place[0] == event.lane]
        if near:
            place = min(near, key=lambda each: abs(each[1] - event.column))
            found = places[place]
            again = found.index(self.selected) + 1 if self.selected in found else 0
            self._select(found[again % len(found)])  # a further click on a number takes the next

    def on_slider_moved(self, event: Slider.Moved) -> None:
        """Go to a time."""
        first = self.view.first_ms or 0
        self._go(int(first + event.share * (self.view.last_ms - first)))

    def action_step(self, direction: int) -> None:
        """Select the message before or after."""
        order = sorted(self.view.messages.values(), key=lambda each: (each.at_ms, each.number))
        order = [each for each in order if each.at_ms <= self.at_ms or direction > 0]
        if not order:
            return
        numbers = [each.number for each in order]
        if self.selected in numbers:
            index = min(max(numbers.index(self.selected) + direction, 0), len(numbers) - 1)
        else:
            index = len(numbers) - 1 if self.past_ms is None or direction < 0 else 0
        self._select(numbers[index])

    def action_lane(self, direction: int) -> None:
        """Select the nearest message of another lane."""
        message = None if self.selected is None else self.view.messages.get(self.selected)
        lane = self.query_one(Lanes).first - 1 if message is None else message.lane
        at_ms = self.at_ms if message is None else message.at_ms
        there = [each for each in self.view.messages.values() if (each.lane - lane) * direction > 0]
        if there:
            nearest = min(there, key=lambda m: (abs(m.lane - lane), abs(m.at_ms - at_ms)))
            self._select(nearest.number)

    def action_move(self, direction: int) -> None:
        """Go a quarter of the window in time."""
        self._go(self.at_ms + direction * self.span_ms // 4)

    def action_begin(self) -> None:
        """Go to the first time, with a window of what follows."""
        self._go((self.view.first_ms or 0) + self.span_ms // 2)

    def action_live(self) -> None:
        """Follow what comes."""
        self.past_ms = None
        self.show()

    def action_zoom(self, direction: int) -> None:
        """Show more of time, or less."""
        shown = min(range(len(SPANS_MS)), key=lambda i: abs(SPANS_MS[i] - self.span_ms))
        self.span_ms = SPANS_MS[min(max(shown + direction, 0), len(SPANS_MS) - 1)]
        self._has_chosen_span = True
        self.show()

    def action_scroll(self, direction: int) -> None:
        """Scroll what is written of the message."""
        self.query_one("#detail").scroll_relative(y=3 * direction, animate=False)

    def action_unselect(self) -> None:
        """Close the message."""
        self.selected = None
        self.show()

    def _select(self, number: int) -> None:
        """Select a message, and bring it into sight."""
        self.selected = number
        message, lanes = self.view.messages[number], self.query_one(Lanes)
        if not 0 <= self.window.column(message.at_ms) < self.window.columns:
            self.past_ms = min(message.at_ms + self.span_ms // 2, self.view.last_ms)
        if not lanes.first <= message.lane < lanes.first + lanes.size.height:
            lanes.first = max(0, message.lane - lanes.size.height // 2)
        self.show()

    def _go(self, at_ms: int) -> None:
        first, last = self.view.first_ms or 0, self.view.last_ms
        self.past_ms = min(max(at_ms, first), last)
        self._has_chosen_span = True
        self.show()
