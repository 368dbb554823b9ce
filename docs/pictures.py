"""Pictures of commands for the documentation: `python -m docs.pictures` runs the commands.

`make site` makes them anew for the site. The fonts are those of the reader: nothing is loaded.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

PICTURES: Final = Path(__file__).parent / "pictures"
COLUMNS: Final = 96
PROGRAM: Final = (sys.executable, "-m", "reliable_channel")
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


MADE: Final = {
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
    command = [*PROGRAM, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(f"{' '.join(arguments)} printed nothing: {done.stderr}")
    return done.stdout


@contextmanager
def _node() -> Iterator[str]:
    command = [*PROGRAM, "node", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().removeprefix("listening on ").strip()
        finally:
            process.terminate()


if __name__ == "__main__":
    make(PICTURES)
