"""Locks and concurrency control for Apache Hudi tables, in Python."""
