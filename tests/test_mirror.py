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
    "reliable_channel/channel.py",
    "reliable_channel/sds/__init__.py",
    "reliable_channel/sds/log.py",
    "reliable_channel/sds/entry.py",
    "reliable_channel/sds/parts/_one.py",
    "reliable_channel/sds/wire_pb2.py",
    "waku/_session.py",
    "plugins/reliable_channel_lab/reliable_channel_lab/__init__.py",
    "plugins/reliable_channel_lab/reliable_channel_lab/sim/world.py",
    "plugins/reliable_channel_svs/reliable_channel_svs/__init__.py",
    "plugins/reliable_channel_svs/reliable_channel_svs/ndn/link.py",
    "plugins/reliable_channel_svs/tests/test_svs_ndn_link.py",
    "tests/__init__.py",
    "tests/channel/__init__.py",
    "tests/hostile/__init__.py",
    "tests/sds/__init__.py",
    "tests/sds/test_log.py",
    "tests/waku/test_session.py",
    "tests/plugins/lab/sim/test_world.py",
)
TESTS_OF = {
    "reliable_channel/channel.py": "tests/channel",
    "reliable_channel/sds/log.py": "tests/sds/test_log.py",
    "reliable_channel/sds/entry.py": "tests/sds/test_log.py",
    "reliable_channel/sds/parts/_one.py": "tests/sds/test_log.py",
    "waku/_session.py": "tests/waku/test_session.py",
    FILES[8]: "tests/plugins/lab/sim/test_world.py",
    FILES[10]: "plugins/reliable_channel_svs/tests/test_svs_ndn_link.py",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in FILES:
        add(tmp_path / name)
    (tmp_path / TABLE).write_text(TABLE_TEXT)
    return tmp_path


def add(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


@pytest.mark.parametrize("module", TESTS_OF)
def test_a_module_has_its_tests(tree: Path, module: str) -> None:
    assert Mirror(tree).tests_of(tree / module) == [tree / TESTS_OF[module]]


def test_a_tree_that_mirrors_has_no_problem(tree: Path) -> None:
    assert list(Mirror(tree).problems()) == []


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        ("waku/new.py", "waku/new.py: nothing mirrors it"),
        ("reliable_channel/new/part.py", "reliable_channel/new/part.py: nothing mirrors it"),
        ("tests/old/__init__.py", "tests/old: mirrors no code"),
        ("tests/sds/test_entry.py", "reliable_channel/sds/entry.py needs no entry"),
    ],
)
def test_what_is_against_the_rule_is_named(tree: Path, new: str, problem: str) -> None:
    add(tree / new)
    (found,) = Mirror(tree).problems()
    assert problem in found


def test_an_entry_leads_to_tests(tree: Path) -> None:
    (tree / TABLE).write_text(TABLE_TEXT.replace("test_log", "test_gone"))
    assert f"{TABLE}: tests/sds/test_gone.py does not exist" in list(Mirror(tree).problems())
