"""The defects of js-waku that docs/interop.md describes are there: their reproductions
reproduce."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from ..needed import PATIENCE_S
from .bench import TOPIC, Bench
from .container import Container
from .defects import ALL

PROGRAMS: Final = Path(__file__).parent / "js" / "defects"
ALONE: Final = sorted(
    program.name
    for program in PROGRAMS.glob("*.mjs")
    if program.name not in ("told.mjs", "push_streams.mjs")
)


def reproduction(lines: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(lines.strip().splitlines()[-1])
    return answer


@pytest.mark.parametrize("program", ALONE)
def test_a_defect_is_there(bench: Bench, program: str) -> None:
    result = reproduction(bench.output("js", f"defects/{program}"))
    print(f"{program}: expected {result['expected']}, got {result['got']}")
    assert result["reproduced"]


def test_a_node_that_opens_a_stream_a_message_is_heard_a_hundred_times(bench: Bench) -> None:
    with bench.network("stock") as network:
        program = network.js_program("push_streams", "defects/push_streams.mjs", TOPIC)
        assert isinstance(program, Container)
        alice = network.ours("alice", service="relay")
        for number in range(150):
            alice.send(b"message %d" % number)
        result = program.wait_for(
            lambda e: e["event"] == "reproduction", PATIENCE_S, "reproduction"
        )
        assert result["reproduced"], result


def test_each_named_defect_has_its_reproduction() -> None:
    assert {defect.reproduction for defect in ALL} <= {p.name for p in PROGRAMS.glob("*.mjs")}
