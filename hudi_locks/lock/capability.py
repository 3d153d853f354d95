"""What a provider may claim, and the conformance kit then judges."""

from __future__ import annotations

import enum

__all__ = ["Capability"]


class Capability(enum.Enum):
    """One claim of a provider. Not claimed means: do not rely on it.

    Exactly one of the three SCOPE claims is made, the widest that holds; at most one of REENTRANT and REACQUIRE.
    """

    SCOPE_THREADS = "excludes threads of one process"
    SCOPE_PROCESSES = "excludes processes of one host"
    SCOPE_HOSTS = "excludes processes of all hosts that reach the backend"
    TIMED_WAIT = "try_acquire waits by itself; otherwise the manager polls it"
    LEASE = "a dead holder's lock becomes free after a bound"
    SESSION = "the backend frees the lock when the holder's connection dies"
    RENEWAL = "renew extends the lease"
    LOSS_NOTICE = "the provider reports a loss without being asked"
    FENCING = "every hold carries a token greater than all before it"
    FAIR = "first come, first served"
    REENTRANT = "the owner may acquire again; as many releases as acquires"
    REACQUIRE = "the owner acquiring again gets the same lease, without a count"
    CANCEL = "a pending wait can be ended from another thread by close"
    OWNER_INFO = "names the present holder"
    LIST = "list_holders names every hold of the table and of its file groups"
    BREAK = "break_if removes a named hold"
    NEEDS_CLOCK_SYNC = "expiry compares wall clocks of different hosts"
    CLOCK_FREE = "expiry survives any clock skew"
    SURVIVES_RECONNECT = "a short loss of the link does not lose the lock"
    LINEARIZABLE = "acquire and release have one order for all clients"
    CREATES_BACKEND = "makes its table, node or folder when missing"
    JVM_COMPATIBLE = "excludes JVM Hudi's provider of the same name"
    FORK_AWARE = "a forked child never believes that it holds"
