from pathlib import Path

from tests.size import Size, report, rooms, statements

SOURCE = '''"""A module."""

LIMIT = 1
"""Of what."""


def take(count: int) -> int:
    """Take some."""
    try:
        if count > LIMIT:
            count -= 1
        else:
            raise ValueError
    except ValueError:
        return 0
    match count:
        case 1:
            return 1
    return (lambda: 2)()
'''
NAMES = [
    "docs/index.md",
    "docs/start/install.md",
    "plugins/lab/lab/sim/world.py",
    "plugins/lab/tests/test_world.py",
    "README.md",
    "tests/sds/log/test_log.py",
    "waku/client.py",
    "waku/p2p/codec.py",
    "waku/p2p/codec_pb2.py",
]


def test_statements_are_counted_without_docstrings() -> None:
    # The assignment, def, try, if, -=, raise, return, match, return, return.
    assert statements(SOURCE) == 10


def test_files_are_counted_by_room(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one = 1\n\ntwo = 2\n")
    (tmp_path / "Makefile").write_text("help: ## list\n\tx\nlint: ready ## check\nready: x\n")
    one = Size(lines=3, statements=2, files=1)
    assert rooms(tmp_path, NAMES) == dict.fromkeys(
        ("plugins/lab", "plugins/lab/tests", "tests", "waku", "waku/p2p"), one
    )
    *_, tests, everything, pages, targets = report(tmp_path, NAMES)
    assert tests.split() == ["tests", "together", "6", "4", "2", "3"]
    assert everything.split() == ["all", "together", "15", "10", "5", "3"]
    assert (pages, targets) == ("2 pages with 12 words", "2 make targets")
