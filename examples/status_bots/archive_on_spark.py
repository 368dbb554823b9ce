"""Read an archive on Spark: each message as it stands now, and the messages of each author by day.

    python archive_on_spark.py archive/

archive.py writes it. Needs Java 17 or 21 and pip install 'reliable-channel-audit[spark]'.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reliable_channel_audit.session import session

COLUMNS = """
    message_id string, type string, chat_id string, author string, clock bigint, sent_at_ms bigint,
    about string, text string, value string, date date
"""


def lines(spark: SparkSession, folder: str) -> DataFrame:
    """The archive, each line once."""
    return spark.read.schema(COLUMNS).json(folder).dropDuplicates(["message_id"])


def standing(lines: DataFrame) -> DataFrame:
    """Messages that were not deleted, with their last text and how many reacted to them."""
    edits = (
        lines.where("type = 'EditMessage'")
        .groupBy(F.col("about").alias("message_id"))
        .agg(F.max_by("text", "clock").alias("last_text"))
    )
    deleted = lines.where("type = 'DeleteMessage'").select(F.col("about").alias("message_id"))
    reactions = (
        lines.where("type = 'EmojiReaction'")
        .groupBy("about", "author", F.substring("value", 2, 20))
        .agg(F.max_by("value", "clock").alias("last"))
        .where("last like '+%'")
        .groupBy(F.col("about").alias("message_id"))
        .agg(F.count("*").alias("reactions"))
    )
    return (
        lines.where("type = 'ChatMessage'")
        .join(deleted, "message_id", "left_anti")
        .join(edits, "message_id", "left")
        .join(reactions, "message_id", "left")
        .select(
            "date",
            "chat_id",
            "message_id",
            "author",
            "clock",
            F.coalesce("last_text", "text").alias("text"),
            F.col("last_text").isNotNull().alias("is_edited"),
            F.coalesce("reactions", F.lit(0)).alias("reactions"),
        )
    )


def by_day(messages: DataFrame) -> DataFrame:
    """Messages, authors and reactions of each chat and day."""
    return messages.groupBy("date", "chat_id").agg(
        F.count("*").alias("messages"),
        F.countDistinct("author").alias("authors"),
        F.sum("reactions").alias("reactions"),
    )


if __name__ == "__main__":
    messages = lines(session(), sys.argv[1]).transform(standing)
    messages.transform(by_day).orderBy("date", "chat_id").show(truncate=False)
    messages.orderBy(F.desc("reactions"), "clock").show(10, truncate=80)
