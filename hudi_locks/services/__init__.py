"""Table services: what keeps a long-lived table small and quick. Runs on the driver; no Spark in it."""

from hudi_locks.services.archival import Archiver, ArchiveResult
from hudi_locks.services.cleaning import Cleaner, CleanResult
from hudi_locks.services.clustering import Clustering, find_planned_slices
from hudi_locks.services.clustering_settings import ClusteringSettings
from hudi_locks.services.compaction import Compaction, choose_slices, planned_slice
from hudi_locks.services.janitor import Janitor, SweepResult
from hudi_locks.services.log_compaction import LogCompaction
from hudi_locks.services.metadata_making import MetadataMade
from hudi_locks.services.metadata_removal import drop_metadata_table
from hudi_locks.services.metadata_services import MetadataUpkeep
from hudi_locks.services.overview import TableSettings
from hudi_locks.services.planned import PendingPlan, Plan, PlannedService
from hudi_locks.services.restoring import Restorer, RestoreResult
from hudi_locks.services.savepoints import Savepoint, Savepoints
from hudi_locks.services.schema_changes import Change, SchemaChanger
from hudi_locks.services.settings import ArchiveSettings, CleanSettings
from hudi_locks.services.table_services import TableServices
from hudi_locks.services.table_writer import TableWriter, identify_table
from hudi_locks.services.versions import VersionChange, downgrade_table, upgrade_table

__all__ = [
    "ArchiveResult",
    "ArchiveSettings",
    "Archiver",
    "Change",
    "CleanResult",
    "CleanSettings",
    "Cleaner",
    "Clustering",
    "ClusteringSettings",
    "Compaction",
    "Janitor",
    "LogCompaction",
    "MetadataMade",
    "MetadataUpkeep",
    "PendingPlan",
    "Plan",
    "PlannedService",
    "RestoreResult",
    "Restorer",
    "Savepoint",
    "Savepoints",
    "SchemaChanger",
    "SweepResult",
    "TableServices",
    "TableSettings",
    "TableWriter",
    "VersionChange",
    "choose_slices",
    "downgrade_table",
    "drop_metadata_table",
    "find_planned_slices",
    "identify_table",
    "planned_slice",
    "upgrade_table",
]
