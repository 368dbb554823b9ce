"""The terminal's view, used with keys and mouse."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from textual.pilot import Pilot
from textual.widgets import Static
from watch_world import talk, view_of

from pytest_reliable_channel.channels import Channels
from reliable_channel_watch.model import View
from reliable_channel_watch.terminal.app import Lanes, Slider, WatchApp


@pytest.fixture
def journals(virtual_time: tuple[str, dict[str, Any]], tmp_path: Path) -> Path:
    """Of three participants that lose a third of what they are sent."""

    async def record() -> None:
        async with Channels() as channels:
            await talk(channels, tmp_path, loss=0.3)

    backend, options = virtual_time
    anyio.run(record, backend=backend, backend_options=options)
    return tmp_path


async def nothing(view: View) -> None:
    """A feed that has ended."""


def used(view: View, use: Callable[[WatchApp, "Pilot[None]"], Awaitable[None]]) -> None:
    """Run the program in a terminal of 100 columns."""

    async def main() -> None:
        app = WatchApp(view, nothing)
        async with app.run_test(size=(100, 40)) as pilot:
            app.show()
            await use(app, pilot)

    anyio.run(main)


def text(app: WatchApp, name: str) -> str:
    return str(app.query_one(name, Static).render())


def test_keys_select_a_message_and_explain_it(journals: Path) -> None:
    async def use(app: WatchApp, pilot: "Pilot[None]") -> None:
        assert "3 participants  15 messages" in text(app, "#head")
        await pilot.press("left")
        last = app.selected
        assert last is not None and app.query_one("#detail").display
        assert view.messages[last].message_id in text(app, "#message")
        assert "has it   2 of 2" in text(app, "#message")
        await pilot.press("left", "left")
        assert app.selected not in (None, last)
        await pilot.press("right", "right")
        assert app.selected == last
        lane = view.messages[last].lane
        await pilot.press("up" if lane else "down")
        assert app.selected is not None
        assert abs(view.messages[app.selected].lane - lane) == 1
        await pilot.press("j", "j", "escape")
        assert not app.query_one("#detail").display

    view = view_of(journals)
    used(view, use)


def test_the_past_is_shown_as_it_was(journals: Path) -> None:
    async def use(app: WatchApp, pilot: "Pilot[None]") -> None:
        assert "live" in text(app, "#head")
        await pilot.press("home", "comma", "comma", "comma")
        assert app.at_ms == view.first_ms and "past" in text(app, "#head")
        await pilot.click(Slider, offset=(99, 0))
        assert app.at_ms == view.last_ms
        await pilot.click(Slider, offset=(0, 0))
        await pilot.press("right")
        assert app.selected == 0, "the first one that is to come"
        await pilot.press("full_stop", "minus", "minus", "plus", "l")
        assert app.past_ms is None

    view = view_of(journals)
    used(view, use)


def test_a_click_selects_the_nearest_message_of_a_lane(journals: Path) -> None:
    async def use(app: WatchApp, pilot: "Pilot[None]") -> None:
        await pilot.press("home")
        lanes = app.query_one(Lanes)
        (lane, column), numbers = next(iter(lanes.picture.messages.items()))
        await pilot.click(Lanes, offset=(14 + column, lane))
        assert app.selected == numbers[0]
        await pilot.click(Lanes, offset=(14 + column, lane))
        assert app.selected == numbers[1 % len(numbers)]

    used(view_of(journals), use)


def test_the_timer_may_ring_while_the_screen_is_taken_down(journals: Path) -> None:
    async def use(app: WatchApp, pilot: "Pilot[None]") -> None:
        await app.query_one(Lanes).remove()
        app.show()

    used(view_of(journals), use)


def test_many_lanes_are_scrolled_to_the_message_that_is_selected() -> None:
    view = View()
    for number in range(200):
        view.entered_log(f"p{number}", f"m{number}", f"p{number}", number * 10)

    async def use(app: WatchApp, pilot: "Pilot[None]") -> None:
        lanes = app.query_one(Lanes)
        assert lanes.first == 0
        await pilot.press("left")
        assert app.selected == 199 and lanes.first > 150
        lanes.on_mouse_scroll_up()
        lanes.on_mouse_scroll_down()
        assert 0 < lanes.first < 200

    used(view, use)


def test_a_feed_that_fails_is_named_and_what_was_read_stays() -> None:
    async def fail(view: View) -> None:
        view.opened("alice", 0, "ops")
        raise ValueError("the journal is gone")

    async def main() -> None:
        app = WatchApp(View(), fail)
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            app.show()
            assert "ops" in text(app, "#head") and "the journal is gone" in text(app, "#head")

    anyio.run(main)
