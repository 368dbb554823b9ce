"""Facts as lasting Parquet files. `ingest` adds journals part by part, and any tool reads them."""
