"""Sources of the pipeline's data, as formats of `spark.read`."""
