"""What happened, operation by operation: written as JSON lines, judged by two engines, and drawn."""

from hudi_locks_conformance.history.judgement import Judgement, find_failing_prefix, judge
from hudi_locks_conformance.history.models import FENCED, MODELS, MUTEX, OWNED, REENTRANT, Call, Model
from hudi_locks_conformance.history.overlaps import Overlap, find_overlaps, find_violations
from hudi_locks_conformance.history.record import History, Hold, Operation
from hudi_locks_conformance.history.search import is_linearizable
from hudi_locks_conformance.history.svg import draw_svg
from hudi_locks_conformance.history.timeline import draw_text

__all__ = [
    "FENCED",
    "MODELS",
    "MUTEX",
    "OWNED",
    "REENTRANT",
    "Call",
    "History",
    "Hold",
    "Judgement",
    "Model",
    "Operation",
    "Overlap",
    "draw_svg",
    "draw_text",
    "find_failing_prefix",
    "find_overlaps",
    "find_violations",
    "is_linearizable",
    "judge",
]
