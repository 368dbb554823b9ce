"""The check of the journals itself: what it lets pass, and what it finds."""

from __future__ import annotations

import pytest

from .checker import Delivery, Story, redelivered_last


def life(text: str) -> list[Delivery]:
    """Each letter a message, in lower case where it is emitted again."""
    return [Delivery(each.upper(), each.islower(), frozenset()) for each in text]


@pytest.mark.parametrize(
    "lives",
    [
        "ABC bcD",
        "ABC bc bcD",
        "ABC ab abc bcD",  # killed twice within what is emitted again
        "A abcD",  # B and C were told, and their lines died with the process
    ],
)
def test_the_end_of_what_was_emitted_is_emitted_again(lives: str) -> None:
    assert not [*redelivered_last(Story("alice", [life(each) for each in lives.split()]))]


@pytest.mark.parametrize(
    ("lives", "found"),
    [
        ("ABC abD", "confirmed"),
        ("ABC acD", "confirmed"),
        ("ABC bcD abcd", "confirmed"),
        ("ABC cbD", "confirmed"),
        ("ABC Dc", "new came before"),
    ],
)
def test_other_orders_are_found(lives: str, found: str) -> None:
    lines = [*redelivered_last(Story("alice", [life(each) for each in lives.split()]))]
    assert any(found in line for line in lines)
