"""Options of writers that share a table."""

from __future__ import annotations

SHARED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "filesystem",
    "hoodie.write.lock.wait_time_ms_between_retry": "20",
}
"""Those that every such test gives; it adds its own."""
BY_INDEX = {
    "SIMPLE": {"hoodie.index.type": "SIMPLE"},
    "BUCKET": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"},
}
"""The rest of it, by index: a count of buckets without buckets would be warned about."""
