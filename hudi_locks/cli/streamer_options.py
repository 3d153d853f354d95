"""Options of Hudi Streamer's command line: which key each means, or why there is none."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from typer.core import TyperCommand

from hudi_locks.errors import ConfigError, NoEffectWarning

__all__ = ["STREAMER_OPTIONS", "StreamerCommand", "StreamerOption", "check_folder", "unescape"]


@dataclass(frozen=True)
class StreamerOption:
    """An option that is Hudi Streamer's alone.

    Attributes:
        keys: What it stands for; of a flag with their values, `key=value`.
        is_flag: Whether no value follows it.
        refusal: Why it is refused, and the way out; "" if it is not.
        no_effect: Why it changes nothing here; "" if it does.
        accepted: The one value that asks for what happens anyway, compared without case; "" if there is none.
    """

    keys: tuple[str, ...] = ()
    is_flag: bool = False
    refusal: str = ""
    no_effect: str = ""
    accepted: str = ""


_EMPTY_SYNC: Final = "catalogs are told after each batch that writes; run HiveSyncTool where nothing was written"
_BOOTSTRAP: Final = "bootstrap the table with JVM Hudi, or load its rows with --op BULK_INSERT"
_SCHEDULING: Final = "table services share no scheduler pool of Spark with the writes"
_MERGER: Final = "rows are merged without Java; use --merge-mode EVENT_TIME_ORDERING or COMMIT_TIME_ORDERING"
_PLANS: Final = "run what is planned with hudi-locks compact or hudi-locks cluster before the job"
_WAITING: Final = "a write does not wait for services; hudi-locks compact and hudi-locks cluster run beside it"
_ANYWAY: Final = "a job does that anyway; --max-retry-count 0 ends it at the first failure"
_POSITION: Final = (
    "what was read is kept by Spark; give the job a new --identifier with a new --checkpoint, and let"
    " auto.offset.reset, or the folder's files, say where it begins"
)

STREAMER_OPTIONS: Final[Mapping[str, StreamerOption]] = {
    "--table-type": StreamerOption(("hoodie.datasource.write.table.type",)),
    "--payload-class": StreamerOption(("hoodie.datasource.write.payload.class",)),
    "--merge-mode": StreamerOption(("hoodie.write.record.merge.mode",)),
    "--record-merge-mode": StreamerOption(("hoodie.write.record.merge.mode",)),
    "--merge-strategy-id": StreamerOption(("hoodie.write.record.merge.strategy.id",)),
    "--record-merge-strategy-id": StreamerOption(("hoodie.write.record.merge.strategy.id",)),
    "--disable-compaction": StreamerOption(
        ("hoodie.compact.inline=false", "hoodie.datasource.compaction.async.enable=false"), is_flag=True
    ),
    "--base-file-format": StreamerOption(accepted="PARQUET", refusal="base files are Parquet files; leave it out"),
    "--merge-impl-classes": StreamerOption(refusal=_MERGER),
    "--record-merge-custom-implementation-classes": StreamerOption(refusal=_MERGER),
    "--transformer-class": StreamerOption(
        refusal="rows are written as they come; transform the stream in a Python program and hand it to IngestJob"
    ),
    "--commit-on-errors": StreamerOption(refusal="a batch is written whole or not at all; mend its rows", is_flag=True),
    "--enable-sync": StreamerOption(("hoodie.datasource.meta.sync.enable=true",), is_flag=True),
    "--enable-hive-sync": StreamerOption(("hoodie.datasource.hive_sync.enable=true",), is_flag=True),
    "--force-empty-sync": StreamerOption(refusal=_EMPTY_SYNC, is_flag=True),
    "--sync-tool-classes": StreamerOption(("hoodie.meta.sync.client.tool.class",)),
    "--run-bootstrap": StreamerOption(refusal=_BOOTSTRAP, is_flag=True),
    "--bootstrap-overwrite": StreamerOption(refusal=_BOOTSTRAP, is_flag=True),
    "--bootstrap-index-class": StreamerOption(refusal=_BOOTSTRAP),
    "--initial-checkpoint-provider": StreamerOption(refusal=_POSITION),
    "--ignore-checkpoint": StreamerOption(refusal=_POSITION),
    "--allow-commit-on-no-checkpoint-change": StreamerOption(
        refusal="there is no commit without a new file or message; leave it out", is_flag=True
    ),
    "--post-write-termination-strategy-class": StreamerOption(
        refusal="end a continuous job by SIGTERM, or leave --continuous out: it ends when all is read"
    ),
    "--config-hot-update-strategy-class": StreamerOption(
        refusal="options are read once; end the job and start it with the new ones, it goes on where it was"
    ),
    "--retry-last-pending-inline-clustering": StreamerOption(refusal=_PLANS, is_flag=True),
    "-rc": StreamerOption(refusal=_PLANS, is_flag=True),
    "--retry-last-pending-inline-compaction": StreamerOption(refusal=_PLANS, is_flag=True),
    "--ingestion-metrics-class": StreamerOption(refusal="it is a Java class; the report of --json has the counts"),
    "--max-pending-compactions": StreamerOption(no_effect=_WAITING),
    "--max-pending-clustering": StreamerOption(no_effect=_WAITING),
    "--retry-on-source-failures": StreamerOption(no_effect=_ANYWAY, is_flag=True),
    "--enable-hive-support": StreamerOption(no_effect="nothing here asks the Hive metastore for tables", is_flag=True),
    **{
        f"--{service}-scheduling-{what}": StreamerOption(no_effect=_SCHEDULING)
        for service in ("delta-sync", "compact", "cluster")
        for what in ("weight", "minshare")
    },
}
"""Those that `hudi-locks ingest` does not declare itself."""
_POSITIONS: Final = re.compile(r"[^/]*|.*,\d+:\d+.*|.*#.*|resumeFrom\w+:.*", re.DOTALL)
"""A number, `topic,partition:offset,…`, `instant#file`."""


class StreamerCommand(TyperCommand):
    """A command whose line may have options of Hudi Streamer; they become `--hoodie-conf`, an error or a warning."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See click's `Command.parse_args`.

        Raises:
            ConfigError: An option is refused.
        """
        return super().parse_args(ctx, list(_translate(args)))


def _translate(words: list[str]) -> Iterator[str]:
    left = iter(words)
    meant: list[str] = []
    for word in left:
        name, equals, value = word.partition("=")
        option = STREAMER_OPTIONS.get(name)
        if option is None:
            yield word
            continue
        if not option.is_flag and not equals and (value := next(left, "")) == "":
            raise ConfigError(f"{name} needs a value", option=name)
        meant += _interpret(name, option, value)
    yield from meant


def _interpret(name: str, option: StreamerOption, value: str) -> list[str]:
    shown = f"{name} {value}".strip()
    if option.accepted and value.lower() == option.accepted.lower():
        return []
    if option.refusal:
        raise ConfigError(f"{shown} is not offered: {option.refusal}", option=name)
    if option.no_effect:
        warnings.warn(f"{shown} has no effect here: {option.no_effect}", NoEffectWarning, stacklevel=2)
    return [word for key in option.keys for word in ("--hoodie-conf", key if option.is_flag else f"{key}={value}")]


def unescape(address: str) -> str:
    """The address without the backslashes that Hudi's examples have before each slash, for a shell to take away."""
    return re.sub(r"\\+/", "/", address) if address.lower().startswith("file:") else address


def check_folder(checkpoint: str) -> None:
    """Whether `--checkpoint` names a folder, as ours does, and not a position, as Hudi's does.

    Raises:
        ConfigError: It is a position.
    """
    if _POSITIONS.fullmatch(checkpoint) and not Path(checkpoint).is_dir():
        message = (
            f"--checkpoint {checkpoint} is no path of a folder, such as ./{checkpoint.partition(',')[0] or 'read'}: a"
            f" position of Hudi Streamer is not offered; {_POSITION}"
        )
        raise ConfigError(message, checkpoint=checkpoint)
