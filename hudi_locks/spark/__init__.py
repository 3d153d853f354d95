"""Hudi tables as Spark DataFrames, for many writers at a time. Needs PySpark 3.5 or 4."""

from hudi_locks.spark.datasource import write
from hudi_locks.spark.hoodie_table import HoodieTable
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.result import Attempt, WriteResult

__all__ = ["Attempt", "HoodieTable", "Operation", "WriteResult", "write"]
