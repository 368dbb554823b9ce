"""What the check of `tests/mirror.py` finds, in a small tree."""

from pathlib import Path

import pytest

from tests.mirror import TABLE, Mirror

TABLE_TEXT = """
[across]
"tests/hostile" = "attackers"

[[elsewhere]]
reason = "seen through the log"
code = "reliable_channel/sds"
tests."tests/sds/test_log.py" = ["entry", "parts/*"]
"""
FILES = (
    "reliable_channel/sds/__init__.py",
    "reliable_channel/sds/log.py",
    "reliable_channel/sds/entry.py",
    "reliable_channel/sds/parts/_one.py",
    "reliable_channel/sds/wire_pb2.py",
    "plugins/reliable_channel_svs/reliable_channel_svs/__init__.py",
    "plugins/reliable_channel_svs/reliable_channel_svs/ndn/link.py",
    "plugins/reliable_channel_svs/svs_tests/ndn/test_link.py",
    "tests/__init__.py",
    "tests/hostile/__init__.py",
    "tests/sds/__init__.py",
    "tests/sds/test_log.py",
)


def add(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


@pytest.mark.parametrize(
    ("new", "table", "problem"),
    [
        ("tests/hostile/test_it.py", TABLE_TEXT, None),
        ("waku/new.py", TABLE_TEXT, "waku/new.py: nothing mirrors it"),
        ("tests/old/__init__.py", TABLE_TEXT, "tests/old: mirrors no code"),
        ("tests/sds/test_entry.py", TABLE_TEXT, "reliable_channel/sds/entry.py needs no entry"),
        (
            "tests/new.py",
            TABLE_TEXT.replace("test_log", "gone"),
            "tests/sds/gone.py does not exist",
        ),
    ],
)
def test_what_is_against_the_rule_is_named(
    tmp_path: Path, new: str, table: str, problem: str | None
) -> None:
    for name in (*FILES, new):
        add(tmp_path / name)
    (tmp_path / TABLE).write_text(table)
    found = list(Mirror(tmp_path).problems())
    assert problem in found[0] if problem else found == []
