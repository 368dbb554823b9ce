"""The golden vectors, and that a broken file is a difference and not a crash."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vectors.waku import check_autosharding, check_waku_message_hash, check_waku_vectors

DATA = Path(__file__).parents[1] / "vectors" / "data" / "waku"

Check = Callable[[Any], Iterator[tuple[str, str | None]]]
CHECKS: list[tuple[Check, str, int]] = [
    (check_waku_message_hash, "waku_message_hash.json", 20),
    (check_autosharding, "autosharding.json", 31),
    (check_waku_vectors, "waku_vectors.json", 80),
]


@pytest.mark.parametrize(("check", "file", "count"), CHECKS)
def test_vectors(check: Check, file: str, count: int) -> None:
    verdicts = list(check(json.loads((DATA / file).read_text())))
    assert len(verdicts) == count
    assert [(name, difference) for name, difference in verdicts if difference] == []


@pytest.mark.parametrize(("check", "file", "count"), CHECKS)
@pytest.mark.parametrize("broken", [None, [], {}, 5, [None], [{}], {"message_hashes": [1]}])
def test_a_broken_document_differs(check: Check, file: str, count: int, broken: Any) -> None:
    assert any(difference for _, difference in check(broken))


def test_a_wrong_answer_differs() -> None:
    cases = json.loads((DATA / "waku_message_hash.json").read_text())[:1]
    cases[0]["go_waku_hash_hex"] = "00"
    ((_, difference),) = check_waku_message_hash(cases)
    assert difference is not None
    assert difference.startswith("ours '64cce7")
