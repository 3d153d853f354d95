"""What a run may not show of a provider's options."""

from __future__ import annotations

from hudi_locks_conformance.secrets import find_secrets, hide_secrets, show_options

OPTIONS = {
    "my.entrance": "sesame",
    "hoodie.aws.secret.key": "aws",
    "my.url": "redis://:hunter2@h/0",
    "my.name": "locks",
}
DECLARED = frozenset({"my.entrance"})


def test_declared_keys_secret_keys_and_passwords_within_values_are_secrets() -> None:
    assert find_secrets(OPTIONS, DECLARED) == {"sesame", "aws", "hunter2"}
    assert show_options(OPTIONS, DECLARED)["my.url"] == "redis://:***@h/0"
    assert show_options(OPTIONS, DECLARED)["my.entrance"] == "***"


def test_a_text_loses_the_longest_secret_first() -> None:
    assert hide_secrets("say sesame-open, or sesame", {"sesame", "sesame-open"}) == "say ***, or ***"
