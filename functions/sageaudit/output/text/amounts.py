"""The five amounts of one job or many jobs, in the order in which every view shows them.

Views show idle capacity only if it is large enough. The JSON always has it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from sageaudit.domain.alert.audit_figures import should_show_idle
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.bill_document import is_upper_bound, undercounted_parts
from sageaudit.domain.audit.document import AuditDocument, IdleCapacityDocument
from sageaudit.domain.audit.finding_document import has_open_trial
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums, Sums, unused_capacity_usd
from sageaudit.domain.bill.bill_facts import PREPAID_ESTIMATE_PREFIX
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.bill.idle_capacity import IdleCause, Unit
from sageaudit.domain.money import UNKNOWN
from sageaudit.output.text.money import ROUND_DOWN, ROUND_NEAREST, Figure, percent_text, sum_figures
from sageaudit.output.text.words import format_number
from sageaudit.structs import replace

COUNTED_IN_JOBS = Figure(None, absent="in its jobs")
"""The spend of a roll-up in tables. Only the rows of its jobs have dollars, so that rows add up."""
IDLE_LABEL = "Idle capacity"
UNIT_WORDS: dict[Unit, str] = {"gpu_hours": "GPU-hours", "vcpu_hours": "vCPU-hours"}
_PLACES_TO_LOOK: dict[IdleCause, str] = {
    "standstill": "why the GPUs were idle for half an hour or more",
    "gpu_use": "whether the code uses the GPU at all",
    "data_loader": "the data loader (the CPU was busy while the GPU waited)",
    "communication": "the communication between hosts (all hosts were equally busy)",
    "batch_size": "a larger batch (GPU memory was free)",
    "parallel_work": "whether the code uses every vCPU",
}
_TEN = Decimal(10)
COLUMN_TITLES = ("Spend", "Avoidable", "Lost", "Possible", IDLE_LABEL)


class Amounts(NamedTuple):
    """The five amounts. Each says how exactly it is known."""

    spend: Figure
    avoidable: Figure
    lost: Figure
    possible: Figure
    idle: Figure

    @property
    def waste(self) -> Figure:
        """The sum of avoidable and lost dollars."""
        return sum_figures((self.avoidable, self.lost))


UNKNOWN_AMOUNTS = Amounts(*[Figure(None)] * 5)
"""The amounts of a period that the history does not cover."""


class Uncertainty(Struct, frozen=True):
    """Why amounts are not exact.

    `is_lower_bound`: the spend lacks a part. `is_upper_bound`: a part of the spend is an upper
    bound. `estimated`: a rate is estimated. `nothing_judged`: no rule could judge what was
    avoidable.

    `avoidable`, `lost`, `possible` and `idle`: this amount is unknown for some jobs.
    """

    is_lower_bound: bool = False
    is_upper_bound: bool = False
    estimated: bool = False
    nothing_judged: bool = False
    avoidable: bool = False
    lost: bool = False
    possible: bool = False
    idle: bool = False


def make_amounts(
    doubts: Uncertainty,
    *,
    total_usd: Decimal | None,
    avoidable_usd: Decimal | None,
    lost_usd: Decimal | None,
    lost_up_to_usd: Decimal | None,
    possible_usd: Decimal | None,
    idle_usd: Decimal | None,
) -> Amounts:
    """Returns the amounts, marked as inexact by `doubts`. None means that an amount is unknown.

    `lost_up_to_usd`: the upper end of the lost amount.
    """
    estimated = doubts.estimated
    absent_text = "not judged" if doubts.nothing_judged else UNKNOWN
    return Amounts(
        spend_figure(total_usd, doubts),
        Figure(avoidable_usd, estimated=estimated, at_least=doubts.avoidable, absent=absent_text),
        Figure(lost_usd, lost_up_to_usd, estimated=estimated, at_least=doubts.lost),
        Figure(possible_usd, at_least=doubts.possible, rounding=ROUND_DOWN),
        Figure(idle_usd, at_least=doubts.idle, rounding=ROUND_NEAREST),
    )


def spend_figure(total_usd: Decimal | None, doubts: Uncertainty) -> Figure:
    """Returns the spend, marked as inexact by `doubts`."""
    return Figure(
        total_usd,
        estimated=doubts.estimated,
        at_least=doubts.is_lower_bound,
        at_most=doubts.is_upper_bound,
    )


def document_amounts(document: AuditDocument) -> Amounts:
    """Returns the amounts of one audit."""
    bill = document["bill"]
    return make_amounts(
        Uncertainty(
            is_lower_bound=bool(undercounted_parts(bill)),
            is_upper_bound=is_upper_bound(bill),
            estimated=bool(bill["estimated"]),
            nothing_judged=document["judged"] == Judged.NO,
            possible=has_open_trial(document["findings"]),
        ),
        total_usd=bill["total_usd"],
        avoidable_usd=document["avoidable_usd"],
        lost_usd=document["lost_usd"],
        lost_up_to_usd=document["lost_up_to_usd"],
        possible_usd=document["possible_usd"],
        idle_usd=unused_capacity_usd(document),
    )


def summary_amounts(summary: AuditSummary) -> Amounts:
    """Returns the amounts of one audit. A roll-up's amounts exclude those of its jobs."""
    amounts = sums_amounts(summary.sums)
    return amounts._replace(spend=COUNTED_IN_JOBS) if summary.rollup else amounts


def sums_amounts(sums: Sums) -> Amounts:
    """Returns the amounts of many jobs.

    An amount that is unknown for some jobs becomes a lower bound. An amount that is unknown for all
    jobs stays unknown.
    """
    return make_amounts(
        sums_doubts(sums),
        total_usd=sums.known_total_usd,
        avoidable_usd=sums.known_avoidable_usd,
        lost_usd=sums.known_lost_usd,
        lost_up_to_usd=sums.known_lost_up_to_usd,
        possible_usd=sums.known_possible_usd,
        idle_usd=sums.known_idle_usd,
    )


def waste_text(sums: Sums) -> str:
    """Returns the avoidable and the lost dollars of many jobs."""
    amounts = sums_amounts(sums)
    return f"{amounts.avoidable}; lost: {amounts.lost}"


def sums_doubts(sums: Sums) -> Uncertainty:
    """Returns why the amounts of many jobs are not exact."""
    return Uncertainty(
        is_lower_bound=bool(sums.incomplete + sums.total_unknown_count),
        is_upper_bound=bool(sums.upper_bounds),
        estimated=bool(sums.estimated),
        nothing_judged=0 < sums.jobs <= sums.unauditable + sums.not_judged,
        avoidable=bool(sums.avoidable_unknown),
        lost=bool(sums.lost_unknown),
        possible=bool(sums.possible_unknown),
        idle=bool(sums.idle_unknown),
    )


def rule_amounts(sums: RuleSums) -> tuple[Figure, Figure, Figure]:
    """Returns the avoidable, lost and possible dollars of a rule's findings."""
    avoidable, lost, possible = (
        Figure(
            sums.known_usd(bucket),
            sums.max_usd(bucket),
            estimated=bool(sums.estimated),
            at_least=bool(sums.unknown(bucket)),
        )
        for bucket in (Bucket.AVOIDABLE, Bucket.LOST, Bucket.POSSIBLE)
    )
    return avoidable, lost, replace(possible, estimated=False, rounding=ROUND_DOWN)


def idle_sentence(document: AuditDocument) -> str | None:
    """Returns sentences about idle capacity, or None if it is unknown or too small to show."""
    idle = document["idle_capacity"]
    if idle is None or not should_show_idle(idle):
        return None
    hours_text = _unused_hours_text(document, idle)
    return f"{hours_text}{_idle_value_text(document, idle)} {_look_at_text(idle)}"


def idle_headline(document: AuditDocument) -> str:
    """Returns `40 of 48 GPU-hours (83%) not used, worth about $31`."""
    idle = document["idle_capacity"]
    if idle is None:
        return "idle hours unknown"
    hours_text = f"{_idle_hours_text(document, idle)} not used"
    if idle["list_usd"] is None:
        return f"{hours_text}, price unknown"
    prepaid_text = ", prepaid" if document["bill"]["basis"] == "prepaid" else ""
    return f"{hours_text}, worth {Figure(idle['list_usd'], rounding=ROUND_NEAREST)}{prepaid_text}"


def _unused_hours_text(document: AuditDocument, idle: IdleCapacityDocument) -> str:
    share = percent_text(idle["idle"], idle["paid"])
    idle_hours, paid_hours = _hours_text(idle["idle"]), _hours_text(idle["paid"])
    # "145 of 145" would mean that every hour was idle
    unused = "nearly all" if idle_hours == paid_hours else idle_hours
    bound = "up to " if document["bill"]["basis"] == "upper_bound" else ""
    unit = UNIT_WORDS[idle["unit"]]
    return f"of the {paid_hours} {unit} paid for, {bound}{unused} ({share}) were not used"


def _idle_hours_text(document: AuditDocument, idle: IdleCapacityDocument) -> str:
    share_text = percent_text(idle["idle"], idle["paid"])
    bound_text = "up to " if document["bill"]["basis"] == "upper_bound" else ""
    idle_text, paid_text = _hours_text(idle["idle"]), _hours_text(idle["paid"])
    # "145 of 145" would mean that every hour was idle
    is_nearly_all = idle_text == paid_text
    hours_text = f"nearly all of {paid_text}" if is_nearly_all else f"{idle_text} of {paid_text}"
    return f"{bound_text}{hours_text} {UNIT_WORDS[idle['unit']]} ({share_text})"


def _idle_value_text(document: AuditDocument, idle: IdleCapacityDocument) -> str:
    if idle["list_usd"] is None:
        return "; their cost is unknown."
    value = Figure(idle["list_usd"], rounding=ROUND_NEAREST)
    value_text = f", worth {value} at {_price_label(document)}"
    if document["bill"]["basis"] == "prepaid":
        return f"{value_text}. The capacity is prepaid: using it better saves no dollars now."
    # a fix may add a cost of its own, such as a volume, so the totals may have less
    wasted_usd = (document["avoidable_usd"] or Decimal(0)) + (document["lost_usd"] or Decimal(0))
    counted = Figure(min(idle["counted_usd"] or Decimal(0), wasted_usd), rounding=ROUND_NEAREST)
    if counted.usd:
        return (
            f"{value_text}. Of this, {counted} is counted above; the rest is not a certain saving."
        )
    if _can_have_fix(document):
        return f"{value_text}. None of it is counted above: it is not a certain saving."
    return f"{value_text}. No change is certain to save this money."


def is_value_estimated(document: AuditDocument) -> bool:
    """Returns True if the price of the job's hours, billed or prepaid, is estimated."""
    bill = document["bill"]
    is_prepaid_estimate = any(note.startswith(PREPAID_ESTIMATE_PREFIX) for note in bill["notes"])
    return is_prepaid_estimate or bool(bill["estimated"])


def _price_label(document: AuditDocument) -> str:
    if is_value_estimated(document):
        return "an estimated rate"
    return "your own prices" if document["bill"]["price_kind"] == "own" else "list price"


def _can_have_fix(document: AuditDocument) -> bool:
    """Returns True if a counted finding has a fix, or if a fix may be missing.

    A fix may be missing if not everything was judged.
    """
    has_fix = any(
        Bucket(finding["bucket"]).is_counted and finding["fix"] for finding in document["findings"]
    )
    return has_fix or document["judged"] != Judged.YES


def _look_at_text(idle: IdleCapacityDocument) -> str:
    causes = idle["likely_causes"]
    places = [_PLACES_TO_LOOK[cause] for cause in causes if cause in _PLACES_TO_LOOK]
    if not places:
        return "A profile of the run shows why."
    return f"Look at {', then '.join(places)}. A profile of the run shows more."


def _hours_text(hours: Decimal) -> str:
    return format_number(hours, 0 if hours >= _TEN else 1)
