"""Pictures show what a command prints, and load nothing."""

import re

from docs import pictures


def test_a_picture_has_the_text_and_its_colours_and_loads_nothing() -> None:
    drawn = pictures.svg("a title", "\x1b[1;32m✓\x1b[0m all is <well>")
    assert "a&#160;title" in drawn and "✓" in drawn and "&lt;well&gt;" in drawn
    assert len(set(re.findall(r"fill: #\w{6}", drawn))) > 1
    assert "url(" not in drawn.replace("url(#", "") and "font-face" not in drawn


def test_the_pictures_of_the_documentation_are_those_that_are_made() -> None:
    committed = {path.stem for path in pictures.PICTURES.glob("*.svg")}
    assert committed == set(pictures.MADE)
    for path in pictures.PICTURES.glob("*.svg"):
        assert f"reliable-channel&#160;{path.stem}" in path.read_text()
        assert "font-face" not in path.read_text()


def test_a_chat_is_run_and_shown_with_its_colours() -> None:
    shown = pictures.chat()
    drawn = pictures.svg("a chat", shown)
    assert "bob&#160;is&#160;here" in drawn and "✓" in drawn
    assert "&gt;&#160;thanks,&#160;all&#160;is&#160;w" in drawn
    assert "\x1b[1malice\x1b[0m" in shown  # in bold


def test_the_doctor_is_run() -> None:
    shown = pictures.doctor()
    assert "nothing listens there" in shown and "version py-waku" in shown
    assert "127.0.0.1" not in shown
