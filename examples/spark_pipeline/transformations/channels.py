"""Archive → messages, decoded → what there is to know of each sender."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reliable_channel_audit.decode import message
from reliable_channel_audit.schemas import STORED

spark = SparkSession.active()


@dp.table(comment="What Waku messages say; what is no SDS message has its reason in `error`.")
def messages() -> DataFrame:
    stored = spark.readStream.schema(STORED).parquet(spark.conf.get("waku.archive"))
    decoded = stored.withColumn("message", message(F.col("payload")))
    return decoded.select("message_hash", "content_topic", "timestamp_ns", "message.*")


@dp.materialized_view(comment="Messages of each participant.")
def senders() -> DataFrame:
    said = spark.read.table("messages").where("kind = 'content'")
    return said.groupBy("channel_id", "sender_id").agg(
        F.count("*").alias("messages"),
        F.sum(F.length("content")).alias("content_bytes"),
        F.max("lamport_timestamp").alias("last_lamport_timestamp"),
    )
