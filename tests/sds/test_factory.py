"""Self-tuning stands behind a door: the core is LIP 109 alone, and the factory makes the rest."""

import re
from pathlib import Path

import pytest

from reliable_channel import sds
from reliable_channel.sds import NIM, SPEC, SdsOptions, SdsProtocol, WireProfile
from reliable_channel.sds.adaptive import reconciling, tuned
from reliable_channel.sds.state import ChannelState
from reliable_channel.sds.sweeps import Sweeps
from tests import inside

from .world import NOW_MS

ROOM = Path(str(sds.__file__)).parent
RESEARCH = re.compile(r"\._?(?:tuner|frontier|reconciliation)\b")


@pytest.mark.parametrize(
    ("profile", "self_tuning", "kinds"),
    [
        (SPEC, False, (ChannelState, Sweeps)),
        (NIM, False, (ChannelState, Sweeps)),
        (SPEC, True, (reconciling.ReconcilingState, reconciling.ReconcilingSweeps)),
        (NIM, True, (tuned.TunedState, tuned.TunedSweeps)),
    ],
)
def test_only_a_channel_that_tunes_itself_has_tuned_collaborators(
    profile: WireProfile, self_tuning: bool, kinds: tuple[type, type]
) -> None:
    options = SdsOptions(self_tuning=self_tuning)
    core = SdsProtocol(
        "c", "a", now_ms=NOW_MS, random=lambda: 0.5, profile=profile, options=options
    )
    assert (type(inside.state(core)), type(inside.sweeps(core))) == kinds


def test_no_line_of_the_core_asks_whether_it_is_tuned() -> None:
    lines = [
        f"{path.relative_to(ROOM)}: {line.strip()}"
        for path in sorted(ROOM.rglob("*.py"))
        if "adaptive" not in path.parts
        for line in path.read_text(encoding="utf-8").splitlines()
        if RESEARCH.search(line)
    ]
    assert lines == []
