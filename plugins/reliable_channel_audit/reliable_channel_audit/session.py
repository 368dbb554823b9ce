"""Spark session, which is local by default, on any master, or through Spark Connect."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from socket import create_connection
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from urllib.request import getproxies

from reliable_channel.errors import ReliableChannelError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES: Final = (
    *("reliable_channel", "waku", "reliable_channel_audit", "reliable_channel_lab"),
    *("reliable_channel_svs", "reliable_channel_mvds"),
)
"""Python packages that worker processes need for reading journals and running simulations."""
MIN_JAVA: Final = 17
TASKS_A_CORE: Final = 4
SHUFFLES: Final = "spark.sql.shuffle.partitions"
_JOINED_FROM: Final = "spark.sql.adaptive.coalescePartitions.initialPartitionNum"
CONNECT_S: Final = 10
_MASTER: Final = re.compile(r"local(\[[\w*]+(,\s*\d+)?\])?|spark://.+:\d+.*")
QUIET: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),  # the only one that has timers
}
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"


class SparkUnavailable(ReliableChannelError):
    """Error that Spark cannot be started or reached. The text of the error gives the solution."""


def session(
    master: str | None = None,
    *,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a Spark session that knows this package's sources, a running session if there is one.

    The default of `master` is `local[*]`. `remote` (or `SPARK_REMOTE`) is an address of Spark
    Connect, `sc://host:port`. On other machines, the workers get this package as a zip file.
    `settings` are Spark's own settings, by name. A JVM that this function starts prints only
    errors.

    Raises:
        SparkUnavailable: pyspark or Java is missing, or no cluster answers at the address.
    """
    if master is not None and _MASTER.fullmatch(master) is None:
        raise SparkUnavailable(
            f"`master` must be local[*] or spark://host:7077 (got {master!r}); for "
            "sc://host:15002 use `remote`"
        )
    if find_spec("pyspark") is None:
        raise SparkUnavailable(
            "Spark is not installed: pip install 'reliable-channel-audit[spark]'; "
            "`reliable-channel check` judges small journals without Spark"
        )
    # Without it the workers start the first python3 of the PATH, which need not have pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    remote = remote or (None if master else os.environ.get("SPARK_REMOTE"))
    if remote:
        spark = _connected(remote, settings or {})
    else:
        spark = _started(master or "local[*]", settings or {})
    from .sources.journals import JournalSource

    spark.dataSource.register(JournalSource)
    return spark


def package_zip(directory: str | Path) -> Path:
    """Write the installed packages of this project to one zip file for remote workers."""
    path = Path(directory) / "reliable_channel.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for package in PACKAGES:
            if (spec := find_spec(package)) is None or spec.origin is None:
                continue
            root = Path(spec.origin).resolve().parents[1]
            for file in sorted((root / package).rglob("*.py")):
                packed.write(file, file.relative_to(root))
    return path


def java_version(java: str | None = None) -> int:
    """Return the version of the Java that Spark would use.

    Raises:
        SparkUnavailable: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = java or (str(Path(home, "bin", "java")) if home else shutil.which("java"))
    how = (
        f"install Java {MIN_JAVA} or 21 (Debian: apt install openjdk-17-jre-headless) "
        "or set JAVA_HOME"
    )
    if java is None:
        raise SparkUnavailable(f"Spark needs Java, but no Java was found: {how}")
    try:
        told = subprocess.run([java, "-version"], capture_output=True, check=False)
    except OSError as error:
        raise SparkUnavailable(f"{java} cannot be run ({error}): {how}") from error
    found = re.search(rb'version "(?:1\.)?(\d+)', told.stderr)
    if found is None:
        raise SparkUnavailable(f"{java} does not say which version it is: {how}")
    if (major := int(found[1])) < MIN_JAVA:
        raise SparkUnavailable(f"{java} is Java {major}, which Spark 4 cannot use: {how}")
    return major


def _started(master: str, settings: Mapping[str, str]) -> SparkSession:
    java_version()
    if master.startswith("spark://"):
        _answered(master, master.removeprefix("spark://").split(","))
    from pyspark.sql import SparkSession

    where = {"spark.master": master, "spark.app.name": "reliable-channel"}
    options = {**where, **QUIET, **settings}
    own = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    options[_JAVA_OPTIONS] = f"{own} {settings.get(_JAVA_OPTIONS, '')}"
    try:
        spark = SparkSession.builder.config(map=options).getOrCreate()
    except Exception as error:  # Py4J's and Java's own, of whatever kind
        raise SparkUnavailable(f"Spark does not start on {master}: {first_line(error)}") from error
    context = spark.sparkContext
    if SHUFFLES not in settings and spark.conf.get(SHUFFLES) == "200":  # Spark's default
        # A stream runs all of them in each batch. Other queries join small ones.
        if not master.startswith("local"):
            spark.conf.set(_JOINED_FROM, spark.conf.get(SHUFFLES))
        spark.conf.set(SHUFFLES, TASKS_A_CORE * context.defaultParallelism)
    if not master.startswith("local"):
        context.addPyFile(str(package_zip(tempfile.mkdtemp())))
    return spark


def _answered(where: str, places: Sequence[str]) -> None:
    """Say in seconds what Spark says after minutes: that nothing listens at any `host:port`."""
    why = ""
    for place in places:
        host, _, port = place.rpartition(":")
        try:
            create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
            return
        except (OSError, ValueError) as error:
            why = str(error)
    raise SparkUnavailable(
        f"no Spark server answers at {where} ({why}); start the server, or give its address"
    )


def _connected(remote: str, settings: Mapping[str, str]) -> SparkSession:
    address = urlsplit(remote)
    if address.scheme != "sc" or not address.hostname:
        raise SparkUnavailable(
            f"{remote!r} is not an address of Spark Connect; give sc://host:15002"
        )
    if not getproxies():
        _answered(remote, [f"{address.hostname}:{address.port or 15002}"])
    from pyspark.sql import SparkSession

    try:
        spark = SparkSession.builder.remote(remote).getOrCreate()
        for name in ("spark.sql.execution.arrow.pyspark.enabled", "spark.sql.session.timeZone"):
            spark.conf.set(name, QUIET[name])
        spark.addArtifacts(str(package_zip(tempfile.mkdtemp())), pyfile=True)
    except Exception as error:  # gRPC's own, of whatever kind
        raise SparkUnavailable(f"no Spark Connect at {remote}: {first_line(error)}") from error
    for name, value in settings.items():
        try:
            spark.conf.set(name, value)
        except Exception as error:  # the server's own, of whatever kind
            raise SparkUnavailable(
                f"{name} can only be set where the server of Spark Connect starts: "
                f"{first_line(error)}"
            ) from error
    return spark


def first_line(error: Exception) -> str:
    """Return the first line of an error (for Java errors, of the innermost cause)."""
    first, *others = str(error).strip().split("\n")
    causes = [line for line in others if line.startswith((": ", "Caused by: "))]
    return (causes[-1].split(": ", 1)[1] if causes else first)[:300]
