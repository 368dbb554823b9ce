"""What the packages offer: sorted, there, and described."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

import reliable_channel
import waku
from reliable_channel import diagnostics, errors, events, options
from reliable_channel.events import AnyEvent

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference.md"
SOURCE = Path(reliable_channel.__file__)
PACKAGES = [reliable_channel, diagnostics, errors, events, options, waku]
PUBLIC = [(package, name) for package in PACKAGES for name in package.__all__]
each_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.__name__)


@each_package
def test_names_are_sorted_and_there_once(package: ModuleType) -> None:
    names = package.__all__
    # Constants, classes, functions, each by ASCII: the order that ruff keeps (RUF022).
    assert names == sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert len(set(names)) == len(names)


def test_every_name_and_method_is_there_and_described() -> None:
    for package, name in PUBLIC:
        value = getattr(package, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            documentation = (value.__doc__ or "").strip()
            # A dataclass without a docstring is given its signature for one.
            assert documentation and not documentation.startswith(f"{name}("), name
        for attribute, member in vars(value).items() if inspect.isclass(value) else ():
            function = member.fget if isinstance(member, property) else member
            if not attribute.startswith("_") and inspect.isfunction(function):
                assert inspect.getdoc(function), f"{name}.{attribute}"


@pytest.mark.parametrize("event", get_args(AnyEvent), ids=lambda event: event.__name__)
def test_every_event_is_public_and_in_the_reference(event: type) -> None:
    assert event.__name__ in events.__all__ + diagnostics.__all__
    wire_name: str = event.wire_name  # type: ignore[attr-defined]
    assert wire_name == re.sub(r"(?<!^)(?=[A-Z])", "_", event.__name__).lower()
    if REFERENCE.exists():
        assert wire_name in REFERENCE.read_text()


def test_wire_names_are_unique() -> None:
    names = [event.wire_name for event in get_args(AnyEvent)]
    assert len(set(names)) == len(names)


def test_applications_have_some_twenty_names() -> None:
    assert len(reliable_channel.__all__) <= 24
    assert set(dir(reliable_channel)) == {*reliable_channel.__all__, "__version__"}


def test_type_checkers_see_the_names_that_are_loaded_on_use() -> None:
    seen = {
        alias.name: node.module
        for node in ast.walk(ast.parse(SOURCE.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
        if node.module != "_version"
    }
    for name, home in seen.items():
        module = importlib.import_module(f"reliable_channel.{home}")
        assert getattr(reliable_channel, name) is getattr(module, name)
    assert set(seen) == set(reliable_channel.__all__)


def test_other_names_are_missing_as_usual() -> None:
    assert not hasattr(reliable_channel, "nothing")
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'reliable_channel'"):
        exec("from reliable_channel import nothing")


def test_the_rooms_are_there_without_an_import_of_their_own() -> None:
    program = "import reliable_channel; print(reliable_channel.diagnostics.SyncSent.wire_name)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "sync_sent\n", done.stderr


def annotations(tree: ast.AST) -> Iterator[str]:
    """Yield the annotations that users see: of functions, methods and attributes with a public name
    in what has one."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if not name.startswith("_") or name in ("__init__", "__call__"):
                    given = [
                        each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg)
                    ]
                    yield from (ast.unparse(each) for each in (*given, node.returns) if each)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                if not name.startswith("_"):
                    yield ast.unparse(annotation)
            case ast.ClassDef(name=name) if not name.startswith("_"):
                yield from annotations(node)
            case _:
                continue


def test_no_signature_names_the_http_library() -> None:
    """httpx can be exchanged without a change for those who use the client."""
    public = [
        file
        for package in (
            ROOT / "reliable_channel",
            ROOT / "waku",
            *ROOT.glob("plugins/*/*reliable*"),
        )
        for file in package.rglob("*.py")
        if not any(re.match(r"_(?!_init__)", part) for part in file.relative_to(ROOT).parts)
    ]
    found = {
        str(file.relative_to(ROOT)): annotation
        for file in public
        if "httpx" in (source := file.read_text(encoding="utf-8"))
        for annotation in annotations(ast.parse(source))
        if "httpx" in annotation
    }
    assert len(public) > 500 and found == {}
