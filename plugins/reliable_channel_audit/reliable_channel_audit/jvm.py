"""JVM of a local Spark session, with checks before its start, and its output."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from reliable_channel.errors import ReliableChannelError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf

MIN_JAVA: Final = 17
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
_HARMLESS: Final = "WARNING: Using incubator modules: jdk.incubator.vector"
"""Java says so whenever Spark 4 starts, before anybody could configure it."""
_SUBMIT_OPTIONS: Final = "SPARK_SUBMIT_OPTS"


class SparkUnavailable(ReliableChannelError):
    """Error that Spark cannot be started or reached. The text of the error gives the solution."""


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


def quiet_gateway(conf: SparkConf) -> JavaGateway:
    """Start a JVM that prints only errors, on the standard error of this process."""
    from pyspark.java_gateway import launch_gateway

    reading, writing = os.pipe()
    given = os.environ.get(_SUBMIT_OPTIONS)
    ours = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    os.environ[_SUBMIT_OPTIONS] = f"{ours} {given or ''}"
    try:
        threading.Thread(
            target=_pass_on,
            args=[os.fdopen(reading, encoding="utf-8", errors="replace")],
            name="reliable_channel.jvm",
            daemon=True,
        ).start()
        return launch_gateway(conf, {"stderr": writing})
    finally:
        os.close(writing)
        if given is None:
            del os.environ[_SUBMIT_OPTIONS]
        else:
            os.environ[_SUBMIT_OPTIONS] = given


def _pass_on(said: IO[str]) -> None:
    with said:
        for line in said:
            if line.rstrip() != _HARMLESS:
                sys.stderr.write(line)
