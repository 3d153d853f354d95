"""Keys of compaction and log compaction: when they follow the writes of a merge-on-read table."""

from __future__ import annotations

from hudi_locks.config.key import Key

INLINE = Key(
    "hoodie.compact.inline",
    bool,
    False,
    "whether a write compacts after its commit, when enough delta commits came since the last time",
    since="0.4.0",
)
INLINE_MAX_DELTA_COMMITS = Key(
    "hoodie.compact.inline.max.delta.commits",
    int,
    5,
    "how many delta commits make compaction due, inline, asynchronous, or only scheduled",
    since="0.4.0",
    minimum=1,
)
TRIGGER_STRATEGY = Key(
    "hoodie.compact.inline.trigger.strategy",
    str,
    "NUM_COMMITS",
    "what makes a compaction due",
    since="0.7.0",
    accepted=("NUM_COMMITS",),
    no_effect="a compaction is due by the number of delta commits: hoodie.compact.inline.max.delta.commits",
)
INLINE_MAX_DELTA_SECONDS = Key(
    "hoodie.compact.inline.max.delta.seconds",
    int,
    3600,
    "after how many seconds a compaction is due, by another trigger strategy",
    since="0.7.0",
    no_effect="a compaction is due by the number of delta commits: hoodie.compact.inline.max.delta.commits",
)
SCHEDULE_INLINE = Key(
    "hoodie.compact.schedule.inline",
    bool,
    False,
    "whether a write only schedules compaction when it is due, for `hudi-locks compact` to run",
    since="0.11.0",
)
ASYNC_ENABLE = Key(
    "hoodie.datasource.compaction.async.enable",
    bool,
    False,
    "whether a thread of its own compacts beside the next write; the JVM's streams do so unless told otherwise",
    since="0.6.0",
)
LOG_INLINE = Key(
    "hoodie.log.compaction.inline",
    bool,
    False,
    "whether a write merges logs into larger ones after its commit, when enough delta commits came since the last time",
    since="0.13.0",
)
LOG_BLOCKS_THRESHOLD = Key(
    "hoodie.log.compaction.blocks.threshold",
    int,
    5,
    "how many logs of a file slice make it worth while to merge them, and how many delta commits make that due",
    since="0.13.0",
    minimum=2,
)
