"""One local session for all tests on Spark (`make test-spark`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from reliable_channel_audit.session import session

from .cluster import QUICK_JAVA

SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def pytest_collection_modifyitems(items: list[Any]) -> None:
    for item in items:
        if "on_spark" in item.nodeid:
            # A guard: four JVMs in turn take a quarter of an hour on a busy machine.
            item.add_marker(pytest.mark.timeout(3_600))
            # pyspark 4.3 itself leaves sockets open and calls what pandas 2 deprecates.
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    started = session("local[2]", settings=SMALL)
    yield started
    started.stop()
