"""What the lock table's users must be allowed to do."""

from __future__ import annotations

from typing import Any, Final

from hudi_locks_providers._dynamodb.settings import DynamoSettings

__all__ = ["iam_policy"]

NEEDED: Final = (
    "dynamodb:CreateTable",
    "dynamodb:DeleteItem",
    "dynamodb:DescribeTable",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
)
"""Of Hudi's documented actions those that this package uses. Transactions need no action of their own: AWS asks for
that of each request in them. CreateTable is for a table that is not there yet, DescribeTable for the check of its
schema; without the latter the check is left out."""
TO_LIST: Final = ("dynamodb:Scan",)
"""Documented by Hudi as well; here `hudi-locks ls` alone needs it."""


def iam_policy(settings: DynamoSettings) -> dict[str, Any]:
    """The policy document: the seven actions that Hudi documents, those that we need in a statement of their own.

    The resource is the lock table. Hudi's documentation has the partition key in that place, which is the name of
    another thing.
    """
    return {
        "Version": "2012-10-17",
        "Statement": [
            _statement("NeededByHudiLocks", NEEDED, settings),
            _statement("NeededToListLocks", TO_LIST, settings),
        ],
    }


def _statement(name: str, actions: tuple[str, ...], settings: DynamoSettings) -> dict[str, Any]:
    return {"Sid": name, "Effect": "Allow", "Action": list(actions), "Resource": settings.arn}
