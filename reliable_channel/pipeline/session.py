"""A Spark session: local by default, on any master, or through Spark Connect."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ..errors import ReliableChannelError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_AT_LEAST: Final = 17
TASKS_A_CORE: Final = 4
_MASTER: Final = re.compile(r"local(\[[\w*]+(,\s*\d+)?\])?|spark://.+:\d+.*|k8s://.+|yarn")
QUIET: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}


class SparkUnavailable(ReliableChannelError):
    """Spark cannot be started or reached; the text says what to do."""


def session(
    master: str | None = None,
    *,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session that knows this package's sources; the running one, if there is one.

    `master` is `local[*]` by default; `remote` (or `SPARK_REMOTE`) an address of Spark Connect,
    `sc://host:port`. Elsewhere than here this package goes along as a zip. `settings` are Spark's
    own, by name.

    Raises:
        SparkUnavailable: pyspark or Java is missing, or the address is none of a cluster.
    """
    if master is not None and _MASTER.fullmatch(master) is None:
        raise SparkUnavailable(
            f"{master!r} is no master; give local[*], spark://host:7077, k8s://https://host:port "
            "or yarn, or sc://host:15002 as remote"
        )
    if master == "yarn" and not os.environ.keys() & {"HADOOP_CONF_DIR", "YARN_CONF_DIR"}:
        raise SparkUnavailable(
            "yarn is found through HADOOP_CONF_DIR: set it to the directory of core-site.xml and "
            "yarn-site.xml"
        )
    if find_spec("pyspark") is None:
        raise SparkUnavailable(
            "Spark is not installed: pip install 'reliable-channel[spark]'; "
            "`reliable-channel check` judges small journals without it"
        )
    # Without it the workers start the first python3 of the PATH, which need not have pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    remote = remote or (None if master else os.environ.get("SPARK_REMOTE"))
    spark = _connected(remote) if remote else _started(master or "local[*]", settings or {})
    if remote:
        _tell_server(spark, settings or {})
    from .sources import register

    register(spark)
    return spark


def java_version(java: str | None = None) -> int:
    """The version of the Java that Spark would run on.

    Raises:
        SparkUnavailable: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = java or (str(Path(home, "bin", "java")) if home else shutil.which("java"))
    how = (
        f"install Java {JAVA_AT_LEAST} or 21 (Debian: apt install openjdk-17-jre-headless) "
        "or set JAVA_HOME"
    )
    if java is None:
        raise SparkUnavailable(f"Spark needs Java, and there is none: {how}")
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise SparkUnavailable(
            f"{java} cannot be run ({error}): {how}, or set JAVA_HOME"
        ) from error
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr)
    if found is None:
        raise SparkUnavailable(f"{java} does not say which version it is: {how}")
    if int(found[1]) < JAVA_AT_LEAST:
        raise SparkUnavailable(f"{java} is Java {found[1]}, which Spark 4 cannot use: {how}")
    return int(found[1])


def package_zip(directory: str | Path) -> Path:
    """This package and `waku` as one zip, for workers elsewhere."""
    path = Path(directory) / "reliable_channel.zip"
    root = Path(__file__).resolve().parents[2]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for package in ("reliable_channel", "waku"):
            for file in sorted((root / package).rglob("*.py")):
                packed.write(file, file.relative_to(root))
    return path


def _started(master: str, settings: Mapping[str, str]) -> SparkSession:
    java_version()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("reliable-channel")
    few = {}
    if master.startswith("local"):  # Spark's 200 are for a cluster: most would be empty here
        few["spark.sql.shuffle.partitions"] = str(TASKS_A_CORE * (os.cpu_count() or 1))
    for name, value in {**QUIET, **few, **settings}.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except Exception as error:  # Py4J's and Java's own, of whatever kind
        raise SparkUnavailable(f"Spark does not start on {master}: {_first_line(error)}") from error
    spark.sparkContext.setLogLevel("ERROR")
    if not master.startswith("local"):
        spark.sparkContext.addPyFile(str(package_zip(tempfile.mkdtemp())))
    return spark


def _connected(remote: str) -> SparkSession:
    address = urlsplit(remote)
    if address.scheme != "sc" or not address.hostname:
        raise SparkUnavailable(f"{remote!r} is no address of Spark Connect; give sc://host:15002")
    from pyspark.sql import SparkSession

    try:
        spark = SparkSession.builder.remote(remote).getOrCreate()
        for name in ("spark.sql.execution.arrow.pyspark.enabled", "spark.sql.session.timeZone"):
            spark.conf.set(name, QUIET[name])
        spark.addArtifacts(str(package_zip(tempfile.mkdtemp())), pyfile=True)
    except Exception as error:  # gRPC's own, of whatever kind
        raise SparkUnavailable(f"no Spark Connect at {remote}: {_first_line(error)}") from error
    return spark


def _tell_server(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Set what a server of Spark Connect lets its clients set."""
    for name, value in settings.items():
        try:
            spark.conf.set(name, value)
        except Exception as error:  # the server's own, of whatever kind
            raise SparkUnavailable(
                f"{name} is set where the server of Spark Connect starts: {_first_line(error)}"
            ) from error


def _first_line(error: Exception) -> str:
    """What is told first; of an error of Java's the innermost cause."""
    first, *others = str(error).strip().split("\n")
    causes = [line for line in others if line.startswith((": ", "Caused by: "))]
    return (causes[-1].split(": ", 1)[1] if causes else first)[:300]
