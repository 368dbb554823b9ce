"""Users in a text, and keys as people copy them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel_status import (
    EVERYONE,
    Community,
    PublicKey,
    mention,
    mentions,
    mentions_everyone,
)
from status_tests.world import ALICE, BOB, COMMUNITY

LEGACY = (
    "0x04deaafa03e3a646e54a36ec3f6968c1d3686847d88420f00c0ab6ee517ee1893398fca28aacd2af74f2654738c2"
    "1d10bad3d88dc64201ebe0de5cf1e313970d3d"
)
SHOWN = "zQ3shudJrBctPznsRLvbsCtvZFTdi3b34uzYDuqE9Wq9m9T1C"


def test_a_key_as_status_go_shows_it() -> None:
    """From `TestSerializeLegacyKey` of status-go."""
    assert PublicKey.parse(LEGACY).multibase == SHOWN
    assert PublicKey.parse(SHOWN) == PublicKey.parse(LEGACY)
    assert Community.parse(COMMUNITY.public_key.multibase) == COMMUNITY


@pytest.mark.parametrize(
    "text", ["zQ3", SHOWN[:-1], SHOWN + "1", "zQ3" + "0" * 46, "zQ3" + "z" * 46, "zQ3" + "1" * 46]
)
def test_what_only_begins_like_a_key(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a public key|not a point"):
        PublicKey.parse(text)


@given(st.text("123zQs", max_size=60))
def test_a_key_has_one_such_text(text: str) -> None:
    try:
        key = PublicKey.parse("zQ3" + text)
    except ValueError:
        return
    assert key.multibase == "zQ3" + text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (f"{mention(ALICE.public_key)} hello", [ALICE]),
        (f"{mention(BOB.public_key)}, {mention(ALICE.public_key)}!", [BOB, ALICE]),
        (f"{mention(ALICE.public_key)} {mention(ALICE.public_key)}", [ALICE]),
        (f"hey @{ALICE.public_key.multibase}.", [ALICE]),
        (ALICE.public_key.hex, []),
        (f"{mention(ALICE.public_key)}0", []),
        ("@0x04" + "11" * 64, []),
        (f"@0x{ALICE.public_key.compressed.hex()}", []),
        (EVERYONE, []),
    ],
)
def test_who_is_mentioned(text: str, expected: list[object]) -> None:
    assert mentions(text) == tuple(key.public_key for key in expected)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "expected"),
    [(f"{EVERYONE} lunch", True), (f"({EVERYONE})", True), (f"{EVERYONE}2", False), ("@0x", False)],
)
def test_everyone_is_mentioned(text: str, expected: bool) -> None:
    assert mentions_everyone(text) is expected
