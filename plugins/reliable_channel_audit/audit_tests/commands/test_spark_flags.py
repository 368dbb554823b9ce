"""Settings of Spark on a command line."""

import pytest
import typer

from reliable_channel_audit.commands.spark_flags import settings


def test_settings_have_names_and_values() -> None:
    assert settings(None) == {}
    assert settings(["spark.executor.memory=4g", "spark.executor.extraJavaOptions=-Da=b"]) == {
        "spark.executor.memory": "4g",
        "spark.executor.extraJavaOptions": "-Da=b",
    }


@pytest.mark.parametrize("text", ["spark.executor.memory", "executor.memory=4g", ""])
def test_what_is_no_setting_is_named(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a setting of Spark; write for example "):
        settings([text])
