"""The five figures of a job, or of many jobs, in the order in which every view shows them."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.bill_document import is_upper_bound, lower_gaps
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import has_open_trial
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums, Sums, idle_usd_of
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.text.money import DOWN, NEAREST, UNKNOWN, Figure, together
from sageaudit.structs import replace

IN_ITS_JOBS = Figure(None, absent="in its jobs")
"""The spend of a roll-up: its jobs have rows of their own, and rows add up."""
TITLES = ("Spend", "Avoidable", "Lost", "Possible", "Idle capacity")


class Amounts(NamedTuple):
    """The figures; `money` says what goes with an amount."""

    spend: Figure
    avoidable: Figure
    lost: Figure
    possible: Figure
    idle: Figure

    @property
    def waste(self) -> Figure:
        """Avoidable and lost dollars together."""
        return together((self.avoidable, self.lost))


NO_AMOUNTS = Amounts(*[Figure(None)] * 5)
"""Those of days that the history does not cover."""


class Doubts(Struct, frozen=True):
    """Why figures are not exact.

    `lower`: the spend lacks a part; `upper`: a part of it is an upper bound. `estimated`: dollars
    rest on an estimated rate. `unjudged`: nothing could judge what was avoidable. `avoidable`,
    `lost`, `possible` and `idle`: these dollars are not known of some jobs.
    """

    lower: bool = False
    upper: bool = False
    estimated: bool = False
    unjudged: bool = False
    avoidable: bool = False
    lost: bool = False
    possible: bool = False
    idle: bool = False


def amounts(
    doubts: Doubts,
    *,
    total_usd: Decimal | None,
    avoidable_usd: Decimal | None,
    lost_usd: Decimal | None,
    lost_up_to_usd: Decimal | None,
    possible_usd: Decimal | None,
    idle_usd: Decimal | None,
) -> Amounts:
    """The figures of these dollars."""
    estimated = doubts.estimated
    absent = "not judged" if doubts.unjudged else UNKNOWN
    return Amounts(
        spend_of(total_usd, doubts),
        Figure(avoidable_usd, estimated=estimated, at_least=doubts.avoidable, absent=absent),
        Figure(lost_usd, lost_up_to_usd, estimated=estimated, at_least=doubts.lost),
        Figure(possible_usd, at_least=doubts.possible, rough=DOWN),
        Figure(idle_usd, at_least=doubts.idle, rough=NEAREST),
    )


def spend_of(total_usd: Decimal | None, doubts: Doubts) -> Figure:
    """What a job cost, or many."""
    return Figure(
        total_usd, estimated=doubts.estimated, at_least=doubts.lower, at_most=doubts.upper
    )


def of_document(document: AuditDocument) -> Amounts:
    """Those of one audit."""
    bill = document["bill"]
    return amounts(
        Doubts(
            lower=bool(lower_gaps(bill)),
            upper=is_upper_bound(bill),
            estimated=bool(bill["estimated"]),
            unjudged=document["judged"] == Judged.NO,
            possible=has_open_trial(document["findings"]),
        ),
        total_usd=bill["total_usd"],
        avoidable_usd=document["avoidable_usd"],
        lost_usd=document["lost_usd"],
        lost_up_to_usd=document["lost_up_to_usd"],
        possible_usd=document["possible_usd"],
        idle_usd=idle_usd_of(document),
    )


def of_head(head: AuditSummary) -> Amounts:
    """Those of one job's newest audit. A roll-up's are what it adds to those of its jobs."""
    found = of_sums(head.sums)
    return found._replace(spend=IN_ITS_JOBS) if head.rollup else found


def of_sums(sums: Sums) -> Amounts:
    """Those of many jobs: unknown where that of none is known, "or more" where not all are."""
    return amounts(
        doubts_of(sums),
        total_usd=sums.known_total_usd,
        avoidable_usd=sums.known_avoidable_usd,
        lost_usd=sums.known_lost_usd,
        lost_up_to_usd=sums.known_lost_up_to_usd,
        possible_usd=sums.known_possible_usd,
        idle_usd=sums.known_idle_usd,
    )


def doubts_of(sums: Sums) -> Doubts:
    """Why the figures of many jobs are not exact."""
    return Doubts(
        lower=bool(sums.incomplete + sums.total_unknown),
        upper=bool(sums.upper_bounds),
        estimated=bool(sums.estimated),
        unjudged=0 < sums.jobs <= sums.unauditable + sums.not_judged,
        avoidable=bool(sums.avoidable_unknown),
        lost=bool(sums.lost_unknown),
        possible=bool(sums.possible_unknown),
        idle=bool(sums.idle_unknown),
    )


def of_rule(sums: RuleSums) -> tuple[Figure, Figure, Figure]:
    """The avoidable, lost and possible dollars of a rule's findings."""
    avoidable, lost, possible = (
        Figure(
            sums.known_usd(bucket),
            sums.most_usd(bucket),
            estimated=bool(sums.estimated),
            at_least=bool(sums.unknown(bucket)),
        )
        for bucket in (Bucket.AVOIDABLE, Bucket.LOST, Bucket.POSSIBLE)
    )
    return avoidable, lost, replace(possible, estimated=False, rough=DOWN)
