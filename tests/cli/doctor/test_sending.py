"""What is sent is found in Store, also in one that refuses or ignores queries by hash."""

from collections.abc import Iterator
from typing import Any

import pytest

from .nodes import Nodes, named, nodes


@pytest.fixture(scope="module")
def world() -> Iterator[Nodes]:
    with nodes() as found:
        yield found


@pytest.mark.parametrize("hash_queries", ["answer", "refuse", "ignore"])
@pytest.mark.parametrize("apis", [{}, {"messaging": True, "rest_apis": ("store",)}])
def test_a_message_is_found_by_hash_or_by_time(
    world: Nodes, apis: dict[str, Any], hash_queries: str
) -> None:
    url = world.start(hash_queries=hash_queries, **apis)
    world.store(url, 150, age_s=600)  # more than a page before it
    found = world.examine(url, wait_s=30)
    assert [one for one in found if one.level == "problem"] == []
    assert "stored after" in named(found, "store.archives", "ok").text


def test_without_store_nothing_is_looked_for(world: Nodes) -> None:
    found = world.examine(world.start(store=False, messaging=True, rest_apis=()))
    assert "store.archives" not in {one.check for one in found}
