"""`reliable-channel audit`: a page that stands by itself, and its figures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import typer
from typer.testing import CliRunner

from reliable_channel_audit.check import check
from reliable_channel_audit.evidence import evidence
from reliable_channel_audit.journals import group_of, journal_files
from reliable_channel_audit.page import title_of
from reliable_channel_audit.plugin import register_commands
from reliable_channel_audit.report import FIGURES, write_report

from ..generated import write_group
from ..planted import plant
from .tables import judged


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
    for figure in FIGURES:
        rows = pq.read_table(page.with_name(f"{figure.name}.parquet"))
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
