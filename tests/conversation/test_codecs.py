"""Codecs: JSON values, msgspec types, pydantic models."""

import dataclasses
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel.conversation import codecs, json
from reliable_channel.conversation.codecs import PLAIN

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(values)
def test_json_values_come_back(value: Any) -> None:
    try:
        payload = json().encode(value)
    except UnicodeEncodeError:
        return  # lone surrogates are no text
    assert json().decode(payload) == value


class Model(pydantic.BaseModel):
    table: int


@dataclasses.dataclass
class Plain:
    table: int


@pytest.mark.parametrize("kind", [Model, Plain, dict[str, int]])
def test_types_come_back_and_other_shapes_do_not(kind: type[Any]) -> None:
    codec, value = json(kind), kind(table=7)
    assert codec.encode(value) == b'{"table":7}'
    assert codec.decode(b'{"table":7}') == value
    for wrong in (b'{"table":"x"}', b"[]", b"\xff", b""):
        with pytest.raises((ValueError, msgspec.MsgspecError)):
            codec.decode(wrong)


def test_json_is_strict_and_short() -> None:
    assert json().encode({"ü": [1, None]}) == '{"ü":[1,null]}'.encode()
    with pytest.raises(ValueError, match="not JSON compliant"):
        json().encode(float("nan"))


def test_without_msgspec_the_text_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install msgspec"):
        json(Plain)
    assert json(Model).decode(b'{"table":7}') == Model(table=7)


def test_plain_payloads_are_bytes() -> None:
    assert PLAIN.encode(memoryview(b"x")) == b"x"  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="encode it"):
        PLAIN.encode("text")  # type: ignore[arg-type]
