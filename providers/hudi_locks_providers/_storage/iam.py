"""What writers must be allowed to do in an S3 bucket."""

from __future__ import annotations

from typing import Any, Final

from hudi_locks_providers._storage.location import Location

__all__ = ["iam_policy"]

_LOCKS: Final = ".hoodie/.locks"


def iam_policy(location: Location) -> dict[str, Any] | None:
    """The policy document for the locks of the table that lies there; None outside S3.

    Listing lets S3 answer 404 for an object that is not there, instead of 403.
    """
    if location.service != "s3":
        return None
    bucket = f"arn:aws:s3:::{location.bucket}"
    locks = f"{bucket}/{location.key(_LOCKS)}"
    return {
        "Version": "2012-10-17",
        "Statement": [
            _statement("Locks", ["s3:GetObject", "s3:PutObject"], f"{locks}/*"),
            _statement("TellAbsentFromForbidden", ["s3:ListBucket"], bucket),
            _statement("RemoveScratchOfTheProbe", ["s3:DeleteObject"], f"{locks}/.hudi_locks/probe/*"),
        ],
    }


def _statement(name: str, actions: list[str], resource: str) -> dict[str, Any]:
    return {"Sid": name, "Effect": "Allow", "Action": actions, "Resource": resource}
