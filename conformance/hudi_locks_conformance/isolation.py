"""Another process in which no optional package can be imported."""

from __future__ import annotations

import json
from typing import Final

from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.storm import run_in_process

__all__ = ["try_without_extras"]

_WITHOUT_EXTRAS: Final = r"""
import functools, importlib, importlib.metadata, json, re, sys
import hudi_locks, hudi_locks_conformance
find_installed = functools.cache(importlib.metadata.packages_distributions)
def find_required(distribution, known):
    if distribution not in known:
        known.add(distribution)
        try:
            wanted = importlib.metadata.requires(distribution) or []
        except importlib.metadata.PackageNotFoundError:
            return known
        for line in wanted:
            if "extra" not in line.partition(";")[2]:
                find_required(flatten(re.match(r"[\w.-]+", line).group()), known)
    return known
def flatten(name):
    return re.sub(r"[-_.]+", "-", name).lower()
def find_own(module):
    own = set()
    for distribution in find_installed().get(module.partition(".")[0], []):
        find_required(flatten(distribution), own)
    return own
def find_modules(distributions):
    return {top for top, names in find_installed().items() if distributions.intersection(map(flatten, names))}
module, name, options = json.loads(sys.argv[1])
core = {name.partition(".")[0] for name in sys.modules} | find_modules(find_required("hudi-locks", find_own(module)))
core |= {module.partition(".")[0]} | set(sys.stdlib_module_names)
class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in core and top in find_installed():
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)
sys.meta_path.insert(0, Blocker())
told = {"import": "", "use": ""}
try:
    importlib.import_module(module)
except ImportError as error:
    told["import"] = f"{type(error).__name__}: {error}"
try:
    with hudi_locks.LockManager(name, options) as manager:
        manager.holder()
except ImportError as error:
    told["use"] = f"{type(error).__name__}: {error}"
except hudi_locks.HudiLocksError:
    pass
print(json.dumps(told))
"""


def try_without_extras(bench: Bench) -> dict[str, str]:
    """What importing the provider's module, and using it, says there: `import` and `use`, empty if nothing."""
    harness = bench.harness
    if "without extras" not in harness.shared:
        arguments = json.dumps([harness.kind.__module__, harness.name, harness.options])
        harness.shared["without extras"] = json.loads(run_in_process(["-c", _WITHOUT_EXTRAS, arguments]))
    told: dict[str, str] = harness.shared["without extras"]
    return told
