"""Size of the project by room, from the files that git knows (`make size`).

Generated protobuf modules are not counted. A string that stands alone is a docstring, no statement.
"""

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePath
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
GENERATED: Final = "*_pb2.py*"
MADE_PAGES: Final = re.compile(r"docs/(api/\w+|reference|message-states|compat-tests)\.md")
"""Pages that are made from code and results, or list the columns of its tables."""
DEEP: Final = {"reliable_channel", "waku", "plugins"}
"""Folders whose subfolders are rooms."""


class Size(NamedTuple):
    """Size of a group of Python files."""

    lines: int
    statements: int
    files: int


def statements(source: str) -> int:
    """Count the statements of a module, without docstrings."""
    todo, count = list[ast.AST](ast.parse(source).body), 0
    while todo:
        node = todo.pop()
        if isinstance(node, ast.stmt):
            value = node.value if isinstance(node, ast.Expr) else None
            count += not (isinstance(value, ast.Constant) and isinstance(value.value, str))
        for field in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(node, field, None)
            todo += inner if isinstance(inner, list) else ()
    return count


def room(path: PurePath) -> str:
    """Name the room of a file; a plugin's own tests are a room, too."""
    folders = path.parts[:-1]
    if folders and folders[0] == "plugins":
        return "/".join(folders[: 3 if folders[2:] and folders[2].endswith("_tests") else 2])
    return "/".join(folders[: 2 if folders and folders[0] in DEEP else 1]) or "."


def rooms(root: Path, names: Iterable[str]) -> dict[str, Size]:
    """Add up the Python files of each room."""
    found: dict[str, Size] = defaultdict(lambda: Size(0, 0, 0))
    for path in map(PurePath, names):
        if path.suffix == ".py" and not fnmatch(path.name, GENERATED):
            source = (root / path).read_text()
            each = Size(source.count("\n"), statements(source), 1)
            found[room(path)] = Size(*map(sum, zip(found[room(path)], each, strict=True)))
    return found


def report(root: Path, names: list[str]) -> Iterator[str]:
    """Yield a line for each room, the totals, the pages and the make targets."""
    found = sorted(rooms(root, names).items())
    of_tests = [each for each in found if "tests" in each[0]]
    for name, group in (("tests together", of_tests), ("all together", found[:])):
        found.append((name, Size(*map(sum, zip(*(size for _, size in group), strict=True)))))
    yield f"{'room':45}{'lines':>9}{'statements':>12}{'files':>7}{'mean':>6}"
    for name, size in found:
        mean = size.lines / max(1, size.files)
        yield f"{name:45}{size.lines:9,}{size.statements:12,}{size.files:7,}{mean:6.0f}"
    pages = [name for name in names if re.fullmatch(r"docs/.*\.md", name)]
    written = [(root / name).read_text() for name in pages if not MADE_PAGES.fullmatch(name)]
    targets = re.findall(r"^[a-z-]+:.*##", (root / "Makefile").read_text(), re.MULTILINE)
    words = sum(len(page.split()) for page in written)
    made = len(pages) - len(written)
    yield f"{len(written)} written pages with {words:,} words, {made} generated"
    yield f"{len(targets)} make targets"


if __name__ == "__main__":
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    print(*report(ROOT, [name for name in listed if (ROOT / name).is_file()]), sep="\n")
