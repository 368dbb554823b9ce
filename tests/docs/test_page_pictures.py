"""Pictures of pages are never left out without a word: CI fails, elsewhere a line says why."""

from pathlib import Path

import pytest

from docs import page_pictures
from interop.debian import ProgramUnavailable


def test_the_committed_pictures_are_there_and_small() -> None:
    for name in page_pictures.MADE:
        picture = page_pictures.DOCS / name
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size <= page_pictures.MAX_BYTES


def test_without_chromium_ci_fails_and_others_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def browser() -> str:
        raise ProgramUnavailable("there is no `chromium`")

    monkeypatch.setattr(page_pictures, "browser", browser)
    monkeypatch.delenv("CI", raising=False)
    page_pictures.make_or_keep(tmp_path)
    said = capsys.readouterr().out
    assert "there is no `chromium`" in said and "pictures/audit.png" in said
    monkeypatch.setenv("CI", "true")
    with pytest.raises(ProgramUnavailable):
        page_pictures.make_or_keep(tmp_path)
