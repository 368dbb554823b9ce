"""What `peer` makes of a line; whole conversations are in test_commands.py. Found by fuzzing."""

import pytest

from reliable_channel.cli.peer import _command


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_a_number_that_json_does_not_have_is_refused(number: str) -> None:
    """An answer repeats `ref`, and `NaN` in it would be no JSON to others."""
    with pytest.raises(ValueError, match=f"{number} is no number of JSON"):
        _command(f'{{"op":"log","ref":{number}}}'.encode())


def test_other_numbers_are_taken() -> None:
    assert _command(b'{"ref":-1.5e3,"op":12}') == {"ref": -1500.0, "op": 12}


@pytest.mark.parametrize(
    "line", [b"[" * 3_000, b"[]", b"null", b"\xff", b"{", b'{"op":' + b"9" * 5_000 + b"}"]
)
def test_what_is_no_command_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        _command(line)
