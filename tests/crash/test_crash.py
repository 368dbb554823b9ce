"""Participants and node are killed under load; nothing that was accepted is lost or told twice.

`make hunt WHAT=crash` is the long run.
"""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from .story import Outcome, run

KILLS = 20
SEED = 5


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("self_tuned", [False, True], ids=["documented", "auto"])
def test_killed_at_random_moments_the_group_loses_nothing(tmp_path: Path, self_tuned: bool) -> None:
    async def story() -> Outcome:
        return await run(tmp_path, kills=KILLS, seed=SEED, self_tuned=self_tuned)

    outcome = anyio.run(story)
    assert outcome.broken == []
    assert outcome.kills == KILLS
    assert outcome.node_kills > 0
    assert outcome.accepted > 100
    assert outcome.redelivered > 0
