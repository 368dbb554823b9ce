"""The spent budget in a file."""

from pathlib import Path

import pytest

from reliable_channel.engine.rate_limit import Spent
from reliable_channel.runtime.budget_file import BudgetFile


def test_what_was_saved_last_is_loaded(tmp_path: Path) -> None:
    file = BudgetFile(tmp_path / "budget.json")
    file.save(Spent(7, 1))
    file.save(Spent(7, 2))
    assert BudgetFile(tmp_path / "budget.json").load() == Spent(7, 2)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "{}", "[]", "7", "[" * 3_000),  # the rest was found by fuzzing
        '{"epoch_index": 1e999, "messages": 7}',
        '{"epoch_index": 1, "messages": -7}',
        '{"epoch_index": true, "messages": 7}',
        '{"epoch_index": 1.5, "messages": "7"}',
    ],
)
def test_a_file_that_is_something_else_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"budget\.json is not a rate limit file"):
        BudgetFile(path).load()
    assert BudgetFile(tmp_path / "absent.json").load() is None
