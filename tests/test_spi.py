"""What a plugin may import is there, and loaded only when it is used."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from reliable_channel import spi

SOURCE = Path(spi.__file__)


def test_every_name_is_there() -> None:
    assert not [name for name in spi.__all__ if getattr(spi, name, None) is None]


def test_what_type_checkers_see_is_what_there_is() -> None:
    seen = {
        alias.name: node.module
        for node in ast.walk(ast.parse(SOURCE.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }
    for name, home in seen.items():
        assert getattr(spi, name) is getattr(import_module(f"reliable_channel.{home}"), name)
    assert sorted(spi.__all__) == sorted(seen)
    assert dir(spi) == sorted(spi.__all__)


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(spi, "nothing")  # noqa: B009 - mypy knows that there is none


def test_a_plugin_of_one_hook_loads_little() -> None:
    program = (
        "import sys; from reliable_channel.spi import hookimpl; "
        "print([m for m in ('httpx', 'sqlite3', 'reliable_channel.transport') if m in sys.modules])"
    )
    bare = "import sys, types; m = types.ModuleType('reliable_channel'); "
    bare += f"m.__path__ = [{str(SOURCE.parent)!r}]; sys.modules['reliable_channel'] = m; "
    done = subprocess.run(
        [sys.executable, "-c", bare + program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
