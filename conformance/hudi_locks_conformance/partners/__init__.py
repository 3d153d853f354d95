"""Lock holders of others, as processes that contend with ours."""

from hudi_locks_conformance.partners.awslabs import awslabs
from hudi_locks_conformance.partners.jvm import JvmContender, Partner, curator, hudi, hudi_storage
from hudi_locks_conformance.partners.matching import HUDI_JVM, NoPartner, find_partners
from hudi_locks_conformance.partners.mixed import run_mixed_storm

__all__ = [
    "HUDI_JVM",
    "JvmContender",
    "NoPartner",
    "Partner",
    "awslabs",
    "curator",
    "find_partners",
    "hudi",
    "hudi_storage",
    "run_mixed_storm",
]
