"""Many contenders for as long as one likes, paused and killed at random, and a verdict on what came of it."""

from hudi_locks_conformance.stress.plan import StressPlan
from hudi_locks_conformance.stress.result import StressResult, render_result, stress_values
from hudi_locks_conformance.stress.running import run_stress

__all__ = ["StressPlan", "StressResult", "render_result", "run_stress", "stress_values"]
