"""The demonstration: several Spark writers, one table of real flights, and readers that agree on every row."""
