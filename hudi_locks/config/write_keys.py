"""Keys of concurrent writing: concurrency mode, cleaning of failed writes, markers, heartbeats, time."""

from __future__ import annotations

from hudi_locks.config.key import Key

SINGLE_WRITER = "SINGLE_WRITER"
OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"
NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
MULTI_WRITER_MODES = (OPTIMISTIC, NON_BLOCKING)

CONCURRENCY_MODE = Key(
    "hoodie.write.concurrency.mode",
    str,
    SINGLE_WRITER,
    "how concurrent writers of one table are kept apart",
    since="0.8.0",
    choices=(SINGLE_WRITER, OPTIMISTIC, NON_BLOCKING),
)
FAILED_WRITES_CLEANER_POLICY = Key(
    "hoodie.clean.failed.writes.policy",
    str,
    "EAGER",
    "when failed writes are rolled back: EAGER and LAZY before each write and by a clean, once the writer's heartbeat"
    " is too old; NEVER. Several writers have LAZY",
    aliases=("hoodie.cleaner.policy.failed.writes",),
    since="0.8.0",
    choices=("EAGER", "LAZY", "NEVER"),
)
NUM_RETRIES_ON_CONFLICT_FAILURES = Key(
    "hoodie.write.num.retries.on.conflict.failures",
    int,
    0,
    "how often a write that met a conflict goes on or begins anew",
    since="0.14.0",
    minimum=0,
)
SCHEMA_CONFLICT_RESOLUTION_ENABLE = Key(
    "hoodie.write.concurrency.schema.conflict.resolution.enable",
    bool,
    True,
    "whether columns that concurrent writes add are united, and contradictions a conflict; else the later commit's"
    " stand",
    since="1.0.2",
)
FOREIGN_WRITERS = Key(
    "hudi_locks.foreign_writers",
    bool,
    True,
    "whether JVM Hudi writers may write to the table too; false drops the wait for clock skew and most listings",
)

USE_TRANSITION_TIME = "USE_TRANSITION_TIME"
BLOCK = "BLOCK"
READ_HOLES_POLICY = Key(
    "hoodie.read.timeline.holes.resolution.policy",
    str,
    USE_TRANSITION_TIME,
    "what an incremental read shows of writes completed behind a pending one: USE_TRANSITION_TIME all, by completion"
    " time, which misses nothing; BLOCK nothing from there on; FAIL (the JVM's default, before table version 8) raises",
    since="0.14.0",
    choices=("FAIL", BLOCK, USE_TRANSITION_TIME),
)
DATA_SKIPPING = Key(
    "hoodie.enable.data.skipping",
    bool,
    True,
    "whether `where` of a read passes over files in which no row can meet it, as the table's metadata table says",
    since="0.10.0",
)

EARLY_CONFLICT_DETECTION_ENABLE = Key(
    "hoodie.write.concurrency.early.conflict.detection.enable",
    bool,
    False,
    "whether conflicts are looked for before files are written",
    since="0.13.0",
)
EARLY_CONFLICT_DETECTION_STRATEGY = Key(
    "hoodie.write.concurrency.early.conflict.detection.strategy",
    str,
    None,
    "Java or Python name of the strategy; by the kind of markers when absent",
    since="0.13.0",
)
EARLY_CONFLICT_CHECK_COMMIT_CONFLICT = Key(
    "hoodie.write.concurrency.early.conflict.check.commit.conflict",
    bool,
    False,
    "whether early detection also looks at completed commits",
    aliases=("hoodie.write.concurrency.early.conflict.check.commit",),
    since="0.13.0",
)
EARLY_CONFLICT_MAX_WAIT_MS = Key(
    "hudi_locks.early_conflict.max_wait_ms",
    int,
    600_000,
    "how long a write that met an earlier one before it wrote waits for that one to end, before it begins anew, in ms",
    minimum=0,
)
ASYNC_CONFLICT_DETECTOR_INITIAL_DELAY_MS = Key(
    "hoodie.write.concurrency.async.conflict.detector.initial_delay_ms",
    int,
    0,
    "pause before the first background check of markers, in ms",
    since="0.13.0",
    minimum=0,
)
ASYNC_CONFLICT_DETECTOR_PERIOD_MS = Key(
    "hoodie.write.concurrency.async.conflict.detector.period_ms",
    int,
    30_000,
    "time between two background checks of markers, in ms",
    since="0.13.0",
    minimum=1,
)

HEARTBEAT_INTERVAL_IN_MS = Key(
    "hoodie.client.heartbeat.interval_in_ms",
    int,
    60_000,
    "time between two heartbeats of a writer, in ms",
    since="0.8.0",
    minimum=1_000,
)
HEARTBEAT_TOLERABLE_MISSES = Key(
    "hoodie.client.heartbeat.tolerable.misses",
    int,
    2,
    "after how many missed heartbeats a writer counts as dead",
    since="0.8.0",
    minimum=1,
)

MARKERS_TYPE = Key(
    "hoodie.write.markers.type",
    str,
    "DIRECT",
    "who makes the markers of files being written: tasks, or a timeline server (the default of JVM Spark writers)",
    since="0.9.0",
    choices=("DIRECT", "TIMELINE_SERVER_BASED"),
)
MARKERS_BATCH_NUM_THREADS = Key(
    "hoodie.markers.timeline_server_based.batch.num_threads",
    int,
    20,
    "number of MARKERS files that the timeline server writes side by side",
    since="0.9.0",
    minimum=1,
)
MARKERS_BATCH_INTERVAL_MS = Key(
    "hoodie.markers.timeline_server_based.batch.interval_ms",
    int,
    50,
    "how long a batch of markers waits at most for one that is being written (in the JVM always), in ms",
    since="0.9.0",
    minimum=1,
)
MARKERS_DELETE_PARALLELISM = Key(
    "hoodie.markers.delete.parallelism",
    int,
    100,
    "how many markers are deleted side by side",
    since="0.9.0",
    minimum=1,
    no_effect="the folder of an instant's markers is deleted as a whole",
)
ROLLBACK_USING_MARKERS = Key(
    "hoodie.rollback.using.markers",
    bool,
    True,
    "whether a rollback finds its files by markers",
    since="0.7.0",
    accepted=("true",),
    no_effect="a rollback looks at the markers and at the folders",
)
FAIL_ON_DUPLICATE_DATA_FILE = Key(
    "hoodie.fail.job.on.duplicate.data.file.detection",
    bool,
    False,
    "whether a stray data file at commit fails the write instead of being removed",
    since="0.14.0",
    no_effect="what a failed attempt of a task wrote never gets a name, so there is no stray file",
)
EMBED_TIMELINE_SERVER = Key(
    "hoodie.embed.timeline.server",
    bool,
    True,
    "whether the driver runs the timeline server that hoodie.write.markers.type asks for",
    since="0.7.0",
)
EMBED_TIMELINE_SERVER_PORT = Key(
    "hoodie.embed.timeline.server.port", int, 0, "its port; 0 for any free one", since="0.7.0", minimum=0
)
EMBED_TIMELINE_SERVER_REUSE = Key(
    "hoodie.embed.timeline.server.reuse.enabled",
    bool,
    False,
    "whether writers of one JVM share it; each write of this package has its own",
    since="0.8.0",
    accepted=("false",),
    no_effect="each write has a timeline server of its own",
)
REMOTE_TIMELINE_SERVER_HOST = Key(
    "hoodie.filesystem.view.remote.host",
    str,
    None,
    "where a timeline server that runs by itself listens, for a driver that runs none",
    since="0.5.0",
)
REMOTE_TIMELINE_SERVER_PORT = Key(
    "hoodie.filesystem.view.remote.port", int, 26754, "its port", since="0.5.0", minimum=1
)
TIMELINE_SERVER_HOST = Key(
    "hudi_locks.timeline_server.host",
    str,
    "127.0.0.1",
    "where the driver's timeline server listens and executors reach it; on a cluster an address of the driver",
)
TIMELINE_SERVER_TOKEN = Key(
    "hudi_locks.timeline_server.token",
    str,
    None,
    "what a timeline server that runs by itself asks for; the driver's own makes a token for each write",
    secret=True,
)

TIME_GENERATOR_TYPE = Key(
    "hoodie.time.generator.type",
    str,
    "WAIT_TO_ADJUST_SKEW",
    "how instants of different hosts are put into one order",
    since="1.0.0",
    choices=("WAIT_TO_ADJUST_SKEW",),
    accepted=("WAIT_TO_ADJUST_SKEW",),
    refusal="it is the only one; leave it out",
)
MAX_EXPECTED_CLOCK_SKEW_MS = Key(
    "hoodie.time.generator.max_expected_clock_skew_ms",
    int,
    200,
    "how far the clocks of two writers may differ, in ms; 1 unless given where no lock keeps out other processes",
    since="1.0.0",
    minimum=0,
)
MAX_CLOCK_DRIFT_MS = Key(
    "hudi_locks.max_clock_drift_ms",
    int,
    10_000,
    "how far this machine's clock, and the newest time on the timeline, may be from the store's clock, in ms",
    minimum=1,
)
