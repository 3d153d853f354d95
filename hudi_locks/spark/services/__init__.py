"""Table services that rewrite rows: clustering, compaction, log compaction. Run on the driver, by Spark jobs."""
