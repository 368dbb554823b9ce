"""Facts as Parquet files that last: `ingest` adds journals part by part, any tool reads them."""
