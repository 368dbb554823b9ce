from collections import Counter, OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds.shares import SLACK, Shares, in_turn
from tests import inside


def made(*entries: tuple[str, str, int]) -> Shares:
    shares = Shares()
    for key, owner, weight in entries:
        shares.add(key, owner, weight)
    return shares


def test_the_oldest_entry_of_whoever_holds_most_goes_first() -> None:
    shares = made(("a1", "alice", 1), ("m1", "mallory", 1), ("m2", "mallory", 1))
    assert (shares.heaviest(), shares.first_to_go()) == ("mallory", "m1")
    shares.remove("m1")
    assert shares.first_to_go() == "a1"  # both hold one, and hers is older
    shares.add("a2", "alice", 5)
    shares.remove("a1")
    assert shares.first_to_go() == "a2"


def test_removing_what_is_not_there_does_nothing() -> None:
    shares = made(("a", "alice", 1))
    shares.remove("b")
    assert (len(shares), shares.owner_of("a")) == (1, "alice")


def test_an_entry_goes_over_to_who_holds_less() -> None:
    shares = made(("h", "mallory", 2), ("m", "mallory", 1))
    shares.claim("h", "mallory")
    assert shares.owner_of("h") == "mallory"
    shares.claim("h", "alice")
    assert (shares.owner_of("h"), shares.weight_of("alice"), shares.weight_of("mallory")) == (
        "alice",
        2,
        1,
    )
    shares.claim("h", "carol")
    assert shares.owner_of("h") == "carol"


@settings(derandomize=True, max_examples=80)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(0, 15), st.integers(1, 5), st.booleans()),
        max_size=120,
    )
)
def test_it_agrees_with_counting_anew(steps: list[tuple[str, int, int, bool]]) -> None:
    shares, model = Shares(), OrderedDict[str, tuple[str, int]]()
    for owner, number, weight, looks in steps:
        key = f"k{number}"
        if key in model:
            shares.remove(key)
            del model[key]
        else:
            shares.add(key, owner, weight)
            model[key] = owner, weight
        if model and looks:
            weights = Counter[str]()
            for who, each in model.values():
                weights[who] += each
            most = max(weights.values())
            expected = next(k for k, (who, _) in model.items() if weights[who] == most)
            assert shares.first_to_go() == expected


def test_what_is_outdated_does_not_pile_up() -> None:
    shares = Shares()
    for n in range(10_000):
        shares.add(f"k{n}", f"owner {n % 7}")
        shares.remove(f"k{n}")
    assert len(shares) == 0
    assert max(inside.sizes(shares).values()) <= SLACK + 1


@pytest.mark.parametrize(("items", "ordered"), [("", ""), ("aaab", "abaa"), ("abab", "abab")])
def test_each_has_a_turn_before_anybody_has_a_second(items: str, ordered: str) -> None:
    assert "".join(in_turn(items, str)) == ordered
