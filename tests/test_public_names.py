"""What the packages offer: sorted, there, and described."""

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

import reliable_channel
import waku
from reliable_channel import Event

REFERENCE = Path(__file__).parents[1] / "docs" / "reference.md"
PACKAGES = [reliable_channel, waku]
PUBLIC = [(package, name) for package in PACKAGES for name in package.__all__]
each_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.__name__)
each_name = pytest.mark.parametrize(("package", "name"), PUBLIC, ids=lambda value: str(value))


@each_package
def test_names_are_sorted_and_there_once(package: ModuleType) -> None:
    names = package.__all__
    # Classes, then functions, each by ASCII: the order that ruff keeps (RUF022).
    assert names == sorted(names, key=lambda name: (name[0].islower(), name))
    assert len(set(names)) == len(names)


@each_name
def test_every_name_is_there_and_described(package: ModuleType, name: str) -> None:
    value = getattr(package, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        documentation = value.__doc__ or ""
        # A dataclass without a docstring is given its signature for one.
        assert documentation.strip()
        assert not documentation.startswith(f"{name}(")


@each_name
def test_every_public_method_is_described(package: ModuleType, name: str) -> None:
    value = getattr(package, name)
    if not inspect.isclass(value):
        return
    for attribute, member in vars(value).items():
        function = member.fget if isinstance(member, property) else member
        if not attribute.startswith("_") and inspect.isfunction(function):
            assert inspect.getdoc(function), f"{name}.{attribute}"


@pytest.mark.parametrize("event", get_args(Event), ids=lambda event: event.__name__)
def test_every_event_is_public_and_in_the_reference(event: type) -> None:
    assert event.__name__ in reliable_channel.__all__
    wire_name: str = event.wire_name  # type: ignore[attr-defined]
    assert wire_name == re.sub(r"(?<!^)(?=[A-Z])", "_", event.__name__).lower()
    if REFERENCE.exists():
        assert wire_name in REFERENCE.read_text()


def test_wire_names_are_unique() -> None:
    names = [event.wire_name for event in get_args(Event)]
    assert len(set(names)) == len(names)
