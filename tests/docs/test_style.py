"""Sentences that users read keep to the rules of docs/glossary.md, Style (`tests/style.py`)."""

from pathlib import Path
from typing import Final

import pytest

from tests.style import of_page, of_paths, of_text, texts

ROOT: Final = Path(__file__).parents[2]
CLEAN: Final = (
    *(
        f"reliable_channel/{name}.py"
        for name in (
            "_option_values blocking channel config diagnostics errors events explanation health "
            "health_server hub json_log options spi _arguments _lazy _message_log "
            "_notifier _own_task _terminal_text _topic_reader"
        ).split()
    ),
    *(
        f"reliable_channel/{room}"
        for room in (
            "_contracts _plugins cli conversation engine runtime sds segmentation state testing "
            "transport"
        ).split()
    ),
    "plugins/pytest_reliable_channel/pytest_reliable_channel",
    *(
        f"plugins/reliable_channel_{name}/reliable_channel_{name}"
        for name in "encryption metrics moderation mvds signing svs watch".split()
    ),
    *(
        f"plugins/reliable_channel_status/reliable_channel_status/bot/{name}.py"
        for name in ("actions", "bot", "events", "options", "owned", "router")
    ),
    *(f"waku/{name}.py" for name in "client errors hashing messaging models topics".split()),
    *(f"waku/{room}" for room in "_api discovery libp2p node/libp2p p2p".split()),
    "waku/node/options.py",
)
"""Rooms whose texts keep to every rule. `python -m tests.style ROOM` lists the rest of others."""
OF_FIGURES: Final = {"CHANGELOG.md", "interop.md", "compat-tests.md", "pipeline.md"}
"""Pages of versions and results, which have a date."""
PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("room", CLEAN)
def test_a_room_keeps_to_the_rules(room: str) -> None:
    assert list(of_paths([ROOT / room])) == []


def test_pages_are_manuals_without_a_diary() -> None:
    pages = [page for page in PAGES if page.name not in OF_FIGURES]
    assert [found for page in pages for found in of_page(page) if found.rule == "R9"] == []


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ('def f():\n    """The number of messages in a log."""', "R1"),
        ('class A:\n    """How a message arrives at its peers."""', "R1"),
        ('class A:\n    is_open: bool\n    """Whether the channel is open at last."""', "R2"),
        ('def f():\n    """Close the channel; a second call does nothing."""', "R4"),
        (f'def f():\n    """Send {"and receive " * 10}messages."""', "R4"),
        ('def f():\n    """Return the peer who sent a message."""', "R5"),
        ('raise ValueError(f"`sides` must be a number")', "R6"),
        ('raise ValueError(f"it has version {1}, not {2}")', "R6"),
        ('def f():\n    """Close the channel."""', "R7"),
        ('x = Option(help="Seconds to wait; 0 for none.")', "R4"),
    ],
)
def test_a_text_that_breaks_a_rule_is_found(source: str, rule: str) -> None:
    assert [broken for text in texts(source) for broken, _ in of_text(text)] == [rule]


def test_a_text_that_keeps_to_the_rules_passes() -> None:
    source = '''
def f():
    """Return the messages of the log, oldest first.

    Raises:
        ChannelClosed: the channel is not open.
    """
    raise ValueError(f"`sides` must be a number (got {sides!r})")
'''
    assert [broken for text in texts(source) for broken in of_text(text)] == []


def test_a_diary_in_a_page_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.style.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("Tried on 23 November 2026.\n\n```\n2026-11-23\n```\n")
    assert [(found.rule, found.place) for found in of_page(page)] == [("R9", "page.md:1")]
