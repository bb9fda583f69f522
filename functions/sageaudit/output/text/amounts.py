"""The five figures of a job, or of many jobs, in the order in which every view shows them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from sageaudit.domain.audit.document import AuditDocument, gaps
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.record import Head
from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.domain.bill.billed_time import Basis
from sageaudit.output.text.money import DOWN, NEAREST, UNKNOWN, Figure, together

IN_ITS_JOBS = Figure(None, absent="in its jobs")
"""The spend of a roll-up: its jobs have rows of their own, and rows add up."""
TITLES = ("Spend", "Avoidable", "Lost", "Possible", "Idle capacity")


class Amounts(NamedTuple):
    """The figures; "about" at an estimated rate, "or more" where a part of the spend is unknown."""

    spend: Figure
    avoidable: Figure
    lost: Figure
    possible: Figure
    idle: Figure

    @property
    def waste(self) -> Figure:
        """Avoidable and lost dollars together."""
        return together((self.avoidable, self.lost))


def amounts(
    *,
    total_usd: Decimal | None,
    avoidable_usd: Decimal | None,
    lost_usd: Decimal | None,
    lost_up_to_usd: Decimal | None,
    possible_usd: Decimal | None,
    idle_usd: Decimal | None,
    estimated: bool,
    incomplete: bool,
    unjudged: bool,
) -> Amounts:
    """The figures of these dollars. `unjudged`: nothing could judge what was avoidable."""
    absent = "not judged" if unjudged else UNKNOWN
    return Amounts(
        Figure(total_usd, estimated=estimated, at_least=incomplete),
        Figure(avoidable_usd, estimated=estimated, absent=absent),
        Figure(lost_usd, lost_up_to_usd, estimated=estimated),
        Figure(possible_usd, rough=DOWN),
        Figure(idle_usd, rough=NEAREST),
    )


def spend_of(total_usd: Decimal | None, basis: Basis, missing: int, *, estimated: bool) -> Figure:
    """What a job cost, where its bill lacks so many things that are no estimates."""
    if basis != "upper_bound" or total_usd is None:
        return Figure(total_usd, estimated=estimated, at_least=bool(missing))
    # its own bound is one thing missing; any other keeps the figure from being a bound
    bound = Figure(Decimal(0), total_usd, estimated=estimated)
    return Figure(total_usd, estimated=True) if missing > 1 else bound


def of_document(document: AuditDocument) -> Amounts:
    """Those of one audit."""
    bill, idle = document["bill"], document["idle_capacity"]
    estimated = bool(bill["estimated"])
    found = amounts(
        total_usd=bill["total_usd"],
        avoidable_usd=document["avoidable_usd"],
        lost_usd=document["lost_usd"],
        lost_up_to_usd=document["lost_up_to_usd"],
        possible_usd=document["possible_usd"],
        idle_usd=idle["list_usd"] if idle else None,
        estimated=estimated,
        incomplete=False,
        unjudged=document["judged"] == Judged.NO,
    )
    spend = spend_of(bill["total_usd"], bill["basis"], len(gaps(bill)), estimated=estimated)
    return found._replace(spend=spend)


def of_head(head: Head) -> Amounts:
    """Those of one job's newest audit. A roll-up's are what it adds to those of its jobs."""
    found = of_sums(head.sums)
    if head.rollup:
        return found._replace(spend=IN_ITS_JOBS)
    avoidable, lost = found.avoidable, found.lost
    if head.avoidable_usd is None:
        avoidable = replace(avoidable, usd=None)
    if head.lost_usd is None:
        lost = replace(lost, usd=None)
    return found._replace(avoidable=avoidable, lost=lost)


def of_sums(sums: Sums) -> Amounts:
    """Those of many jobs. What is known of no job is unknown, and not 0."""
    priced = sums.known_total_usd is not None
    return amounts(
        total_usd=sums.known_total_usd,
        avoidable_usd=sums.known_avoidable_usd,
        lost_usd=sums.known_lost_usd,
        lost_up_to_usd=sums.lost_up_to_usd,
        possible_usd=sums.possible_usd if sums.possible_usd or priced else None,
        idle_usd=None if sums.idle_unpriced and not sums.idle_usd else sums.idle_usd,
        estimated=bool(sums.estimated),
        incomplete=bool(sums.incomplete + sums.unpriced),
        unjudged=none_judged(sums.jobs, sums.unauditable, sums.not_judged),
    )


def none_judged(jobs: int, unauditable: int, not_judged: int) -> bool:
    """Whether there are jobs, and what was avoidable is known of none."""
    return 0 < jobs <= unauditable + not_judged


def of_rule(sums: RuleSums, *, estimated: bool) -> tuple[Figure, Figure, Figure]:
    """A rule's avoidable, lost and possible dollars in sums that rest on estimated rates or not."""
    return (
        Figure(sums.avoidable_usd, estimated=estimated),
        Figure(sums.lost_usd, estimated=estimated),
        Figure(sums.possible_usd, rough=DOWN),
    )
