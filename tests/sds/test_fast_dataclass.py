"""Values compare and hash by their fields, and take no others."""

from dataclasses import replace

import pytest

from reliable_channel.sds.fast_dataclass import value


@value
class Place:
    row: int
    column: int = 0


def test_a_value_is_what_its_fields_say() -> None:
    assert Place(1) == Place(1, 0) != Place(1, 2)
    assert len({Place(1), Place(1, 0), Place(2)}) == 2
    assert replace(Place(1), column=2) == Place(1, 2)


def test_a_value_takes_no_other_attribute() -> None:
    with pytest.raises(AttributeError):
        setattr(Place(1), "height", 3)  # noqa: B010 - the type checker knows it


def test_a_value_shows_its_fields() -> None:
    assert repr(Place(1)) == "Place(row=1, column=0)"
