"""What was found in a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Final, TypedDict

from hudi_locks.errors import DamagedTable, UnsupportedTable

__all__ = ["DAMAGE", "NOTE", "Notebook", "TableFinding", "VerificationRecord", "VerificationReport"]

DAMAGE: Final = "damage"
NOTE: Final = "note"
_FORMAT: Final = 1
_FROM_COPY: Final = "bring the file back from a copy of the table"


@dataclass(frozen=True, order=True)
class TableFinding:
    """One thing that is not as it should be.

    Attributes:
        severity: `damage`, or `note` for what harms nobody.
        kind: What it concerns, such as `base-file`, `log`, `timeline` or `claim`.
        path: The file, relative to the base path.
        expected: What should be there.
        found: What is there.
        advice: The next step.
    """

    severity: str
    kind: str
    path: str
    expected: str
    found: str
    advice: str

    def __str__(self) -> str:
        word = self.severity.upper() if self.severity == DAMAGE else self.severity
        return f"{word} {self.kind} {self.path}: expected {self.expected}; found {self.found}; next: {self.advice}"


class VerificationRecord(TypedDict):
    """A report as JSON has it; fields are added, never changed, while `format` stays as it is.

    Attributes:
        format: 1.
        table: Base path.
        sound: Whether nothing is damaged.
        findings: Damage first; each with severity, kind, path, expected, found and advice.
        checked: How many of each kind were looked at.
        not_checked: What was not, and why.
    """

    format: int
    table: str
    sound: bool
    findings: list[dict[str, str]]
    checked: dict[str, int]
    not_checked: list[str]


@dataclass(frozen=True)
class VerificationReport:
    """All that was found.

    Attributes:
        table: Base path.
        findings: Damage first.
        checked: How many of each kind were looked at.
        not_checked: What was not, and why.
    """

    table: str
    findings: tuple[TableFinding, ...]
    checked: dict[str, int]
    not_checked: tuple[str, ...]

    @property
    def damages(self) -> tuple[TableFinding, ...]:
        """Without the notes."""
        return tuple(finding for finding in self.findings if finding.severity == DAMAGE)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damages

    def confirmed_by(self, later: VerificationReport) -> VerificationReport:
        """The later report with the damage that both have: what others were in the midst of is done by then."""
        known = {(finding.kind, finding.path) for finding in self.damages}
        kept = tuple(f for f in later.findings if f.severity == NOTE or (f.kind, f.path) in known)
        return VerificationReport(later.table, kept, later.checked, later.not_checked)

    def to_record(self) -> VerificationRecord:
        """For JSON."""
        return VerificationRecord(
            format=_FORMAT,
            table=self.table,
            sound=self.is_sound,
            findings=[asdict(finding) for finding in self.findings],
            checked=dict(sorted(self.checked.items())),
            not_checked=list(self.not_checked),
        )


@dataclass
class Notebook:
    """Where the checks of one walk through a table write down what they find."""

    findings: list[TableFinding] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    not_checked: list[str] = field(default_factory=list)

    def damage(self, kind: str, path: str, *, expected: str, found: str, advice: str = _FROM_COPY) -> None:
        """Something is damaged."""
        self.findings.append(TableFinding(DAMAGE, kind, path, expected, found, advice))

    def note(self, kind: str, path: str, *, expected: str, found: str, advice: str) -> None:
        """Something is odd, and harms nobody."""
        self.findings.append(TableFinding(NOTE, kind, path, expected, found, advice))

    def leave_out(self, what: str) -> None:
        """Something is not looked at."""
        if what not in self.not_checked:
            self.not_checked.append(what)

    @contextmanager
    def reading(self, kind: str, path: str, expected: str) -> Iterator[None]:
        """Write down what cannot be read inside, and go on behind it."""
        try:
            yield
        except UnsupportedTable as error:
            self.leave_out(str(error))
        except DamagedTable as error:
            self.damage(kind, path, expected=expected, found=str(error))

    def report(self, table: str) -> VerificationReport:
        """All of it."""
        unique = tuple(sorted(dict.fromkeys(self.findings)))
        return VerificationReport(table, unique, dict(self.checked), tuple(self.not_checked))
