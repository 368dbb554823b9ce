"""What a Status bot archived, and the journal of its SDS channel, read by Spark."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

from pyspark.sql import SparkSession

from reliable_channel_status import Community, PrivateKey, Reaction
from reliable_channel_status.testing import BotTester

from .tables import judged

EXAMPLES = Path(__file__).parents[4] / "examples" / "status_bots"
COMMUNITY = Community(PrivateKey(b"c" * 32).public_key)
FIRST, SECOND = (f"{number}dc14fd8-9a8b-4df5-a358-2c3067be5439" for number in (1, 2))


def example(name: str) -> Any:
    return SimpleNamespace(**run_path(str(EXAMPLES / f"{name}.py")))


def archived(folder: Path, journals: Path) -> None:
    """Two days of a community, with a crash of the archiver in between."""
    bot = example("archive").make_bot("http://node", COMMUNITY.id, folder, journals)
    with BotTester(bot) as kit:
        alice, bob = kit.user("Alice"), kit.user("Bob")
        said = alice.says("hällo", channel=FIRST)
        alice.edits(said, "hallo", channel=FIRST)
        alice.edits(said, "hallo!", channel=FIRST)
        for kind in (Reaction.LOVE, Reaction.LAUGH):
            bob.reacts(said, kind, channel=FIRST)
        bob.reacts(said, Reaction.LOVE, retracted=True, channel=FIRST)
        alice.deletes(alice.says("a slip", channel=FIRST), channel=FIRST)
        kit.crash()
        bob.says("nobody was there", channel=FIRST)
        kit.wait(86_400)
        kit.start()
        alice.says("tomorrow", channel=SECOND)


def test_an_archive_becomes_messages_as_they_stand(spark: SparkSession, tmp_path: Path) -> None:
    archived(tmp_path / "archive", tmp_path / "journals")
    for file in sorted((tmp_path / "archive").glob("*/*.jsonl")):
        file.write_text(2 * file.read_text())  # as a crash repeats lines
    on_spark = example("archive_on_spark")
    lines = on_spark.lines(spark, str(tmp_path / "archive"))
    messages = lines.transform(on_spark.standing).cache()
    assert [
        (row.date, row.chat_id, row.text, row.is_edited, row.reactions)
        for row in messages.orderBy("clock").collect()
    ] == [
        (date(2023, 11, 14), COMMUNITY.channel_id(FIRST), "hallo!", True, 1),
        (date(2023, 11, 14), COMMUNITY.channel_id(FIRST), "nobody was there", False, 0),
        (date(2023, 11, 15), COMMUNITY.channel_id(SECOND), "tomorrow", False, 0),
    ]
    days = messages.transform(on_spark.by_day).orderBy("date").collect()
    assert [(row.messages, row.authors, row.reactions) for row in days] == [(2, 2, 1), (1, 1, 0)]


def test_the_archivers_journal_is_judged(tmp_path: Path) -> None:
    archived(tmp_path / "archive", tmp_path / "journals")
    found = judged(tmp_path / "journals", tmp_path / "facts")
    assert not found.verdict.broken, found
