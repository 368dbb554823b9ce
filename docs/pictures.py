"""Pictures of commands for the documentation: `python -m docs.pictures` runs the commands.

`make site` makes them anew for the site. The fonts are those of the reader: nothing is loaded.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from tests.cli import forked
from tests.cli.emulator import Emulator
from tests.cli.processes import Terminal

PICTURES: Final = Path(__file__).parent / "pictures"
COLUMNS: Final = 96
_FONT_FACE: Final = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)
_ENVIRONMENT: Final = {
    "COLUMNS": str(COLUMNS),
    "FORCE_COLOR": "1",
    "TERM": "xterm-256color",
}


def svg(title: str, output: str) -> str:
    """A terminal window with this output, whose colours are escape sequences."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(output), soft_wrap=False)
    form = _FONT_FACE.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code, monospace", "monospace")
    return console.export_svg(title=title, code_format=form, unique_id="terminal") + "\n"


def demo() -> str:
    """The table at the end of the demo."""
    shown = _output("demo", "--seed", "1", "--timeout", "600")
    lines = shown.splitlines()
    begin = next(number for number, line in enumerate(lines) if "What the network did" in line)
    end = next(number for number, line in enumerate(lines) if "What to try next" in line)
    return "\n".join(["$ reliable-channel demo", "", *lines[begin:end]]).rstrip()


def doctor() -> str:
    """Two nodes, one of which is not there."""
    with _node() as address, TemporaryDirectory() as home:
        flags = ("--sender-id", "shop", "--node", address, "--node", "http://127.0.0.1:9")
        shown = _output("doctor", *flags, home=home)
    typed = "$ reliable-channel doctor --sender-id shop --node http://10.0.0.1:8645 --node …"
    shown = shown.replace(home, "/home/shop").replace(address, "http://10.0.0.1:8645")
    return f"{typed}\n{shown.replace('http://127.0.0.1:9', 'http://10.0.0.2:8645')}".rstrip()


def chat() -> str:
    """A terminal in which three people talk."""
    with _node() as address, TemporaryDirectory() as home:

        def command(verb: str, sender: str, *arguments: str) -> list[str]:
            flags = ("--sender-id", sender, "--node", address, "-o", "sync_min_interval_ms=1000")
            return [verb, *flags, *arguments]

        environment = {**os.environ, **_ENVIRONMENT, "HOME": home}
        said = command("send", "carol", "7.2 is on the test machines")
        forked.run(*said, check=True, env=environment)
        with Terminal(*command("chat", "alice"), columns=COLUMNS, env=environment) as alice:
            alice.until("7.2 is on the test machines")
            with Terminal(*command("chat", "bob"), columns=COLUMNS, env=environment) as bob:
                bob.until("7.2 is on the test machines")
                alice.type("I see it too, and it answers\n")
                bob.until("it answers")
                alice.until("✓")
                bob.type("then I roll it out\n")
                alice.until("roll it out")
                alice.type("/who\n")
                alice.until("carol")
                alice.until("> ")
                alice.type("thanks, all is w")
                alice.until("all is w")
        shown = Coloured(COLUMNS, 25)
        shown.feed(alice.screen)
    typed = "$ reliable-channel chat --sender-id alice"
    return "\n".join([typed, *shown.coloured]).replace(address, "http://127.0.0.1:8645").rstrip()


class Coloured(Emulator):
    """A terminal that keeps colours: a styled character is one of a private code point."""

    _PRIVATE: Final = 0xF0000

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__(columns, rows)
        self._style = ""
        self._cells: list[tuple[str, str]] = []
        """Style and character of each."""

    @property
    def coloured(self) -> list[str]:
        """The rows, with escape sequences for the colours."""
        return ["".join(self._parts(row)) for row in self.shown]

    def _parts(self, row: str) -> Iterator[str]:
        first = self._PRIVATE
        cells = (self._cells[ord(one) - first] if ord(one) >= first else ("", one) for one in row)
        for style, part in groupby(cells, key=itemgetter(0)):
            text = "".join(character for _, character in part)
            yield f"{style}{text}\x1b[0m" if style else text

    def _control(self, parameters: str, letter: str) -> None:
        if letter == "m":
            self._style = "" if parameters in ("", "0") else f"{self._style}\x1b[{parameters}m"
        super()._control(parameters, letter)

    def _put(self, character: str) -> None:
        if self._style:
            self._cells.append((self._style, character))
            character = chr(self._PRIVATE + len(self._cells) - 1)
        super()._put(character)


MADE: Final = {
    "chat": ("a chat: · is sent, ✓ is received", chat),
    "demo": ("five participants, 30 % loss, one is cut off for a while", demo),
    "doctor": ("reliable-channel doctor", doctor),
}


def make(folder: Path) -> None:
    """Write all pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (title, run) in MADE.items():
        (folder / f"{name}.svg").write_text(svg(title, run()))


def _output(*arguments: str, home: str | None = None) -> str:
    inherited = {name: text for name, text in os.environ.items() if "RELIABLE_CHANNEL" not in name}
    environment = inherited | _ENVIRONMENT | ({"HOME": home} if home else {})
    done = forked.run(*arguments, env=environment)
    if not done.stdout:
        raise RuntimeError(f"{' '.join(arguments)} printed nothing: {done.stderr}")
    return done.stdout


@contextmanager
def _node() -> Iterator[str]:
    with forked.Process("node", "--port", "0", stdout=PIPE) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().removeprefix("listening on ").strip()
        finally:
            process.terminate()


if __name__ == "__main__":
    make(PICTURES)
