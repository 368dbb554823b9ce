"""The declarative pipeline of examples/, run by Spark's own command."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from reliable_channel.sds.dialects import SpecCodec
from reliable_channel_audit.schemas import STORED

from .cluster import ENVIRONMENT
from .test_decode import SAID

EXAMPLE = Path(__file__).parents[4] / "examples" / "spark_pipeline"
SMALL = "spark.sql.shuffle.partitions: '2'"
END_S = 500


def test_an_archive_becomes_tables(spark: SparkSession, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE, project)
    path = project / "spark-pipeline.yml"
    spec = path.read_text().replace("/var/lib/channels", str(tmp_path))
    path.write_text(spec.replace("timeZone: UTC", f"timeZone: UTC\n  {SMALL}"))

    said = [
        replace(SAID, sender_id=sender, message_id=f"{sender}-{number}")
        for sender in ("alice", "bob")
        for number in range(20)
    ]
    payloads = [*map(SpecCodec().encode, said), b"\xff"]
    rows = [
        (b"%d" % n, "/waku/2/rs/1/0", "topic", n, each, None) for n, each in enumerate(payloads)
    ]
    spark.createDataFrame(rows, STORED).write.parquet(str(tmp_path / "archive"))

    ran = subprocess.run(
        [str(Path(sys.executable).with_name("spark-pipelines")), "run"],
        cwd=project,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=END_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr

    tables = project / "spark-warehouse"
    senders = spark.read.parquet(str(tables / "senders")).collect()
    assert {
        (row.channel_id, row.sender_id, row.messages, row.content_bytes) for row in senders
    } == {
        ("general", "alice", 20, 100),
        ("general", "bob", 20, 100),
    }
    (undecoded,) = spark.read.parquet(str(tables / "messages")).where("error is not null").collect()
    assert undecoded.error.startswith("not an SDS message")
