"""Group K: loading and configuration."""

from __future__ import annotations

import pickle
import warnings
from typing import Any, Final

from hudi_locks import Capability, ConfigError, LockManager, ProviderLoadError
from hudi_locks.config import KEYS, Key, Options, lock_keys, redact
from hudi_locks.errors import UnknownKeyWarning
from hudi_locks.lock import available_providers, load_provider_class
from hudi_locks.lock.aliases import JAVA_CLASSES
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import check
from hudi_locks_conformance.isolation import try_without_extras

_SECRET: Final = "s3cr3t-of-the-kit"  # noqa: S105  # planted, to be looked for
_NO_NUMBER: Final = "not-a-number"


def _path(bench: Bench) -> str:
    return f"{bench.harness.kind.__module__}:{bench.harness.kind.__qualname__}"


@check("K1", "every-way-of-naming", why="a Hudi properties file must work unchanged")
def every_way_of_naming(bench: Bench) -> None:
    """The name given, `module:Class`, `module.Class`, the entry point and the Java names lead to one class."""
    path, kind = _path(bench), bench.harness.kind
    shorts = [short for short, target in available_providers().items() if target == path]
    names = [bench.harness.name, path, path.replace(":", "."), *shorts]
    names += [java for java, short in JAVA_CLASSES if short in shorts]
    for name in names:
        bench.expect(load_provider_class(name) is kind, f"{name} leads to another class")


@check("K2", "unknown-names-the-nearest", why="a slip in a name must not cost an hour of searching")
def unknown_names_the_nearest(bench: Bench) -> None:
    """A name that is nearly right is answered with the right one."""
    path = _path(bench)
    with bench.expect_raises(ProviderLoadError, "a wrong class name was loaded") as answer:
        load_provider_class(f"{path}x")
    right = path.partition(":")[2]
    bench.expect(right in str(answer.error).replace(f"{path}x", ""), f"the error does not name {right}: {answer.error}")


@check("K3", "missing-extra-gets-the-command", why="a missing package must be told as what to install")
def missing_extra_gets_the_command(bench: Bench) -> None:
    """Where no optional package is installed the provider works, or says `pip install ...`."""
    said = try_without_extras(bench)["use"]
    bench.expect(not said or "pip install" in said, f"without optional packages: {said}")
    if not said:
        bench.note("needs no optional package")


@check("K4", "class-must-be-a-provider", why="what is loaded by a string must be judged before it is used")
def class_must_be_a_provider(bench: Bench) -> None:
    """A name that leads to something else is refused, saying what it is."""
    with bench.expect_raises(ProviderLoadError, "something that is no provider was loaded") as answer:
        load_provider_class(f"{bench.harness.kind.__module__}:__name__")
    bench.expect("str" in str(answer.error), f"the error does not say what was found: {answer.error}")


@check("K5", "absent-key-is-named", why="a writer without its settings must be told which, before it writes")
def absent_key_is_named(bench: Bench) -> None:
    """Without any option the provider works, or names a key that it needs, and itself."""
    try:
        bench.provider({}).holder(bench.scope())
    except ConfigError as error:
        bench.expect(any(key in str(error) for key in (*KEYS, *bench.harness.options)), f"names no key: {error}")
    else:
        bench.note("needs no key")


class _Recording(Options):
    """Options that remember which keys were asked of them."""

    seen: dict[str, Key[Any]]

    def __init__(self, values: dict[str, str]) -> None:
        super().__init__(values)
        self.seen = {}

    def find(self, key: Key[Any]) -> Any:
        self.seen[key.name] = key
        return super().find(key)


def _keys_read(bench: Bench) -> dict[str, Key[Any]]:
    options = _Recording(bench.harness.options)
    provider = bench.provider(options)
    provider.release(bench.acquire(provider, bench.scope()))
    return options.seen


@check("K6", "bad-value-is-named", why="60s for 60000 must be told as that, not as a failure of the lock service")
def bad_value_is_named(bench: Bench) -> None:
    """A value of the wrong type is refused with key, value and what was expected."""
    typed = [key for key in _keys_read(bench).values() if key.kind is not str]
    for key in (*typed, lock_keys.WAIT_TIME_MS):
        options = {**bench.harness.options, key.name: _NO_NUMBER}
        with bench.expect_raises(ConfigError, f"{key.name}={_NO_NUMBER} was accepted") as answer:
            LockManager(bench.harness.name, options).close()
        text = str(answer.error)
        bench.expect(key.name in text and _NO_NUMBER in text and key.kind.__name__ in text, f"says only: {text}")
    if not typed:
        bench.note("reads no number and no flag")


@check("K7", "unknown-key-warns", why="a misspelt key is a setting that silently does nothing")
def unknown_key_warns(bench: Bench) -> None:
    """An unknown key warns; one that is nearly a known one is refused with that one's name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bench.manager({"hoodie.write.lock.nobody.ever.heard.of.it": "1"})
    bench.expect(any(issubclass(one.category, UnknownKeyWarning) for one in caught), "an unknown key does not warn")
    with bench.expect_raises(ConfigError, "a misspelt key was accepted") as answer:
        bench.manager({"hoodie.write.lock.wait_tme_ms": "1"})
    bench.expect("hoodie.write.lock.wait_time_ms" in str(answer.error), f"names another key: {answer.error}")


@check("K8", "aliases-mean-the-same", why="an old name in a properties file must keep its meaning")
def aliases_mean_the_same(bench: Bench) -> None:
    """An alias is read as its key; both with one value are fine, and with two values refused."""
    keys = {key.name: key for key in _keys_read(bench).values() if key.aliases}
    key = lock_keys.CLIENT_WAIT_TIME_MS_BETWEEN_RETRY
    options = {**bench.harness.options, key.aliases[0]: "77"}
    with LockManager(bench.harness.name, options) as manager:
        bench.expect(manager.policy.client_pause_s == 0.077, f"{key.aliases[0]} is not read as {key.name}")
    for known in (key, *keys.values()):
        given = bench.harness.options.get(known.name, str(known.default or 77))
        same = {**bench.harness.options, known.name: given, known.aliases[0]: given}
        LockManager(bench.harness.name, same).close()
        with bench.expect_raises(ConfigError, f"two values for {known.name} were accepted"):
            LockManager(bench.harness.name, {**same, known.aliases[0]: f"{given}1"}).close()


@check("K9", "mapping-is-copied", why="options that change under a living client make two writers disagree")
def mapping_is_copied(bench: Bench) -> None:
    """The constructor takes a plain mapping, does not change it, and does not follow later changes of it."""
    given = dict(bench.harness.options)
    provider = bench.harness.kind(given, clock=bench.clock, on_lost=lambda *_: None)
    bench.expect(given == bench.harness.options, "the constructor changed the mapping")
    given["hoodie.table.name"] = "changed afterwards"
    same = provider.options.get("hoodie.table.name") == bench.harness.options.get("hoodie.table.name")
    bench.expect(same, "the provider follows later changes of the mapping")
    provider.close()


@check("K10", "missing-capability-is-refused", why="a job that needs fencing must fail at its start, not at night")
def missing_capability_is_refused(bench: Bench) -> None:
    """`require` with what is claimed loads; with what is not claimed it refuses, and names it."""
    claims = bench.harness.claims
    load_provider_class(bench.harness.name, require=claims)
    missing = next(claim for claim in Capability if claim not in claims)
    with bench.expect_raises(ProviderLoadError, f"{missing.name} is not claimed, but was granted") as answer:
        load_provider_class(bench.harness.name, require={missing})
    bench.expect(missing.name in str(answer.error), "the error does not name the capability")


@check("K11", "options-travel-without-secrets-in-sight", why="Spark sends settings to executors, and logs them")
def options_travel_without_secrets_in_sight(bench: Bench) -> None:
    """Options survive pickling without their secrets, and show none of them."""
    provider = bench.provider({**bench.harness.options, "hoodie.aws.secret.key": _SECRET})
    copy = pickle.loads(pickle.dumps(provider.options))  # noqa: S301  # our own bytes
    bench.expect(redact(copy) == redact(provider.options), "the options changed on their way")
    shown = f"{provider!r} {provider.options!r} {redact(provider.options)} {pickle.dumps(provider.options)!r}"
    bench.expect(_SECRET not in shown, "a secret is shown")
