"""Where the pipeline's data come from, as formats of `spark.read`."""
