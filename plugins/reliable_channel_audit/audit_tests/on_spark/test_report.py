"""`reliable-channel audit`: a page that stands by itself, and its figures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import typer
from typer.testing import CliRunner

from reliable_channel_audit.check import check
from reliable_channel_audit.clocks import clock_offsets
from reliable_channel_audit.evidence import evidence
from reliable_channel_audit.facts import Repair
from reliable_channel_audit.journals import Participant, group_of, journal_files
from reliable_channel_audit.misbehaviour import Deed
from reliable_channel_audit.page import title_of
from reliable_channel_audit.plugin import register_commands
from reliable_channel_audit.report import (
    FIGURES,
    acknowledgement_latency,
    clocks,
    members,
    repair_efficiency,
    write_report,
)
from reliable_channel_audit.tables.participants import NEVER, acknowledged

from ..generated import write_group
from ..planted import plant
from ..test_clocks import OFFSETS, lags
from .tables import fact, judged, judged_facts


def test_the_page_stands_by_itself(tmp_path: Path) -> None:
    path = write_group(tmp_path / "journals")[1]
    ((_, _, message_id),) = plant("missing", path, seed=1)
    judged_here = judged(tmp_path / "journals", tmp_path / "facts")
    group = group_of(journal_files([tmp_path / "journals"])).participants
    shown = evidence(group, judged_here.verdict, [tmp_path / "journals"])
    paths = [tmp_path / "journals"]
    page = write_report(judged_here, tmp_path / "report", paths=paths, evidence=shown)

    text = page.read_text()
    assert "Broken promises" in text
    assert message_id in text
    assert "<svg" in text
    assert not re.search(r"<script|<link|src=|@import|url\(http", text)
    for name in FIGURES:
        rows = pq.read_table(page.with_name(f"{name}.parquet"))
        told = {name for row in rows.to_pylist() for name, value in row.items() if value}
        assert all(f">{title_of(name)}</th>" in text for name in told - {"channel_id"})
    found = json.loads(page.with_name("report.json").read_text())
    assert len(shown) == 1
    expected = json.loads(check([tmp_path / "journals"]).to_json())
    assert found == expected | {"evidence": [each.to_dict() for each in shown]}
    assert [each["lost"] for each in found["rates"] if each["lost"]] == [1, 1, 1]
    hours, pairs = (
        pq.read_table(page.with_name(f"delivery_by_{name}.parquet")) for name in ("hour", "pair")
    )
    assert sum(hours["lost"].to_pylist()) == sum(pairs["lost"].to_pylist()) == 1
    assert pairs.num_rows == 12


def test_the_causal_dag_on_request(tmp_path: Path) -> None:
    write_group(tmp_path / "journals", loss=0.3)
    found = judged(tmp_path / "journals", tmp_path / "facts")
    page = write_report(found, tmp_path / "report", with_dag=True)
    assert "The causal DAG" in page.read_text()
    assert pq.read_table(page.with_name("dag.parquet")).num_rows == 120


def test_the_command_writes_it_without_spark(tmp_path: Path) -> None:
    write_group(tmp_path / "journals")
    app = typer.Typer()
    register_commands(app)
    command = ["check", str(tmp_path / "journals"), "--dag"]
    assert CliRunner().invoke(app, command).exit_code == 2
    told = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "report")])
    assert told.exit_code == 0, told.output
    assert told.output.splitlines()[-1].startswith("report: file://")
    assert (tmp_path / "report" / "dag.parquet").exists()


def rows(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in found]


def test_acknowledgement_latency() -> None:
    participant = Participant("general", "alice", (), 0)
    by_history = "causal_history"
    waits = [(by_history, 300), (by_history, 100), ("bloom_filter", 40), (NEVER, 0)]
    told = judged_facts()._replace(acknowledged=acknowledged(participant, waits))
    assert rows(acknowledgement_latency(told)) == [
        ("general", "alice", "bloom_filter", 1, 40, 40, 40, 40),
        ("general", "alice", "causal_history", 2, 100, 300, 300, 300),
        ("general", "alice", "never", 1, None, None, None, None),
    ]


def test_repair_efficiency() -> None:
    given = judged_facts(
        fact(Repair, "alice", message_id="a", requests=3, responses=0),
        fact(Repair, "alice", message_id="b", requests=1, responses=2),
        fact(Repair, "bob", message_id="a", requests=0, responses=1),
    )
    assert rows(repair_efficiency(given)) == [
        ("general", "alice", 2, 4, 2, 2.0),
        ("general", "bob", 0, 0, 1, None),
    ]


def test_clocks() -> None:
    found = clocks(judged_facts(offsets=clock_offsets(lags(*OFFSETS))))
    expected = [("general", name, offset_ms) for name, offset_ms in OFFSETS.items()]
    assert [row[:3] for row in rows(found)] == expected


def test_members() -> None:
    deeds = [
        fact(
            Deed,
            whose,
            sender="'mallory'",
            what="refused as forged_id",
            message_id="m",
            at_ms=at_ms,
            times=times,
        )
        for whose, at_ms, times in (("alice", 10, 2), ("bob", 5, 40))
    ]
    expected = [("general", "'mallory': refused as forged_id", 42, 2, 5)]
    assert rows(members(judged_facts(*deeds))) == expected
