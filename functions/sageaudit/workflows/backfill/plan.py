"""What a backfill finds deployed, what it would do, and how that is said."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from botocore.config import Config
from msgspec import Struct

from sageaudit.adapters.aws.clients import CONFIG, client
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoInstallation, DynamoSweepNotes
from sageaudit.domain.advice.own_cost import OWN_AUDIT_USD, OWN_WRITE_USD
from sageaudit.domain.job.job import duration
from sageaudit.domain.job.listed import Period
from sageaudit.domain.sweep import still_swept
from sageaudit.errors import BadUsage
from sageaudit.output.text.links import HistoryPlace
from sageaudit.output.text.money import Figure
from sageaudit.output.text.words import counted
from sageaudit.workflows.backfill import Deployed, Standing
from sageaudit.workflows.redrive import WORK, LetterKind, outputs_of
from sageaudit.workflows.scan.accounts import THREADS

_CONFIG = CONFIG.merge(Config(max_pool_connections=THREADS))
_KEPT = {63: "an hour", 15: "5 minutes"}
"""After so many days CloudWatch has only values of these periods."""
BROUGHT_A_SECOND = 5
"""Audits of a file: one takes about eight requests to DynamoDB after each other. Our estimate."""
_WORDS = {
    Standing.MISSING: "to send",
    Standing.AUDITED: "audited",
    Standing.CAME: "waiting or failing: their events came",
    Standing.RECENT: "not of the past: ended after the installation, within the last 30 days",
    Standing.RUNNING: "not ended",
    Standing.UNREADABLE: "that cannot be read",
    Standing.ELSEWHERE: "of accounts or regions that the stack does not audit",
}


class Stack(Struct, frozen=True):
    """A deployed stack, as a backfill needs it."""

    deployed: Deployed
    queue: SqsQueue
    table: str
    place: HistoryPlace
    """The table, for commands that ask it."""

    @property
    def regions(self) -> list[str]:
        """Those that it audits."""
        return sorted({region for _, region in self.deployed.places})


def find(session: Any, name: str) -> Stack:
    """The stack in the session's region. Raises BadUsage where it has not swept yet, or AwsError.

    Before its first sweep nobody knows when it was installed, and so which jobs are of the past.
    """
    outputs = outputs_of(session, name, "TableName", WORK[LetterKind.FINISHED])
    table, region = outputs["TableName"], session.region_name
    dynamodb = client(session, "dynamodb", region, _CONFIG)
    notes = DynamoSweepNotes(dynamodb, table)
    installed_at = DynamoInstallation(dynamodb, table).installed_at()
    places = {(one.account, one.region) for one in still_swept(notes.lists())}
    if installed_at is None or not places:
        raise BadUsage(
            f"the stack {name} has not swept yet, so that messages about jobs of the past could be"
            " sent: wait 15 minutes, or see `sageaudit doctor --stack`"
        )
    queue = SqsQueue(client(session, "sqs", region), outputs[WORK[LetterKind.FINISHED]])
    deployed = Deployed(DynamoHistory(dynamodb, table), notes, places, installed_at)
    return Stack(deployed, queue, table, HistoryPlace.of_table(table, region))


def metrics_line(period: Period, now: datetime) -> str | None:
    """What CloudWatch does not have any more of so old jobs; None where it has all."""
    for days, kept in _KEPT.items():
        first = (now - timedelta(days=days)).date()
        if period.since < first:
            return (
                f"jobs that began before {first} have metrics of {kept} at best: CloudWatch keeps"
                " finer ones no longer, so less of short jobs can be judged"
            )
    return None


def counts_line(standings: Counter[Standing], done: str = "") -> str:
    """`12 jobs: 10 to send, 2 audited`; `done` is said of those that were to send."""
    words = {**_WORDS, Standing.MISSING: done} if done else _WORDS
    parts = [f"{standings[one]:,} {word}" for one, word in words.items() if standings[one]]
    return ": ".join([counted(standings.total(), "job"), *filter(None, [", ".join(parts)])])


def cost_line(jobs: int, per_minute: int) -> str:
    """What sending so many jobs costs, and how long it takes."""
    return (
        f"this backfill costs {_usd(OWN_AUDIT_USD * jobs)}, by list prices of 2025 for jobs of four"
        " hosts (docs/before-you-deploy.md), with a year of storage; it takes"
        f" {_time(60 * jobs / per_minute)}, at {per_minute:,} jobs a minute"
    )


def bringing_line(jobs: int) -> str:
    """The same for audits of a file, which are only written."""
    return (
        f"this costs {_usd(OWN_WRITE_USD * jobs)}, by list prices of 2025 for DynamoDB, with a year"
        f" of storage; it takes about {_time(jobs / BROUGHT_A_SECOND)}"
    )


def _usd(amount: Decimal) -> str:
    return str(Figure(amount, estimated=True))


def _time(seconds: float) -> str:
    return duration(Decimal(max(round(seconds), 1)))
