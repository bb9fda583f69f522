"""The five figures of a job, or of many jobs, in the order in which every view shows them.

The fifth, capacity that was paid for and not used, has a sentence too. It is shown if somebody
should look: the JSON always has the figure.
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
from sageaudit.output.text.money import (
    ROUND_DOWN,
    ROUND_NEAREST,
    UNKNOWN,
    Figure,
    percent_text,
    sum_figures,
)
from sageaudit.output.text.words import format_number
from sageaudit.structs import replace

COUNTED_IN_JOBS = Figure(None, absent="in its jobs")
"""The spend of a roll-up: its jobs have rows of their own, and rows add up."""
IDLE_LABEL = "Idle capacity"
UNIT_WORDS: dict[Unit, str] = {"gpu_hours": "GPU-hours", "vcpu_hours": "vCPU-hours"}
_IDLE_ADVICE: dict[IdleCause, str] = {
    "standstill": "why the GPUs stood still for half an hour or more",
    "gpu_use": "whether the code uses the GPU at all",
    "data_loader": "the data loader (the CPU was busy while the GPU waited)",
    "communication": "the communication between hosts (all were used alike)",
    "batch_size": "a larger batch (GPU memory was free)",
    "parallel_work": "whether the code uses every vCPU",
}
"""A profile is asked for last, in words of its own."""
_TEN = Decimal(10)
COLUMN_TITLES = ("Spend", "Avoidable", "Lost", "Possible", IDLE_LABEL)


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
        return sum_figures((self.avoidable, self.lost))


UNKNOWN_AMOUNTS = Amounts(*[Figure(None)] * 5)
"""Those of days that the history does not cover."""


class Uncertainty(Struct, frozen=True):
    """Why figures are not exact.

    `lower`: the spend lacks a part; `upper`: a part of it is an upper bound. `estimated`: dollars
    rest on an estimated rate. `unjudged`: nothing could judge what was avoidable. `avoidable`,
    `lost`, `possible` and `idle`: these dollars are not known of some jobs.
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
    """The figures of these dollars."""
    estimated = doubts.estimated
    absent = "not judged" if doubts.nothing_judged else UNKNOWN
    return Amounts(
        spend_figure(total_usd, doubts),
        Figure(avoidable_usd, estimated=estimated, at_least=doubts.avoidable, absent=absent),
        Figure(lost_usd, lost_up_to_usd, estimated=estimated, at_least=doubts.lost),
        Figure(possible_usd, at_least=doubts.possible, rounding=ROUND_DOWN),
        Figure(idle_usd, at_least=doubts.idle, rounding=ROUND_NEAREST),
    )


def spend_figure(total_usd: Decimal | None, doubts: Uncertainty) -> Figure:
    """What a job cost, or many."""
    return Figure(
        total_usd,
        estimated=doubts.estimated,
        at_least=doubts.is_lower_bound,
        at_most=doubts.is_upper_bound,
    )


def document_amounts(document: AuditDocument) -> Amounts:
    """Those of one audit."""
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


def summary_amounts(head: AuditSummary) -> Amounts:
    """Those of one job's newest audit. A roll-up's are what it adds to those of its jobs."""
    found = sums_amounts(head.sums)
    return found._replace(spend=COUNTED_IN_JOBS) if head.rollup else found


def sums_amounts(sums: Sums) -> Amounts:
    """Those of many jobs: unknown where that of none is known, "or more" where not all are."""
    return make_amounts(
        sums_doubts(sums),
        total_usd=sums.known_total_usd,
        avoidable_usd=sums.known_avoidable_usd,
        lost_usd=sums.known_lost_usd,
        lost_up_to_usd=sums.known_lost_up_to_usd,
        possible_usd=sums.known_possible_usd,
        idle_usd=sums.known_idle_usd,
    )


def sums_doubts(sums: Sums) -> Uncertainty:
    """Why the figures of many jobs are not exact."""
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
    """The avoidable, lost and possible dollars of a rule's findings."""
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
    """One or two plain sentences; None where there is no figure or too little to speak of."""
    figure = document["idle_capacity"]
    if figure is None or not should_show_idle(figure):
        return None
    spent = f"{_idle_hours_text(document, figure)} were paid for but not used"
    return f"{spent}{_value(document, figure)} {_idle_advice_text(figure)}"


def idle_headline(document: AuditDocument) -> str:
    """`40 of 48 GPU-hours (83%) not used, price not known`; what is worth dollars is no saving."""
    figure = document["idle_capacity"]
    if figure is None:
        return "its idle hours are not known"
    hours = f"{_idle_hours_text(document, figure)} not used"
    if figure["list_usd"] is None:
        return f"{hours}, price not known"
    prepaid = ", prepaid" if document["bill"]["basis"] == "prepaid" else ""
    return f"{hours}, worth {Figure(figure['list_usd'], rounding=ROUND_NEAREST)}{prepaid}"


def _idle_hours_text(document: AuditDocument, figure: IdleCapacityDocument) -> str:
    part = percent_text(figure["idle"], figure["paid"])
    upper = "up to " if document["bill"]["basis"] == "upper_bound" else ""
    idle, paid = _hours_text(figure["idle"]), _hours_text(figure["paid"])
    # one figure twice would say that all of it was idle
    hours = f"nearly all of {paid}" if idle == paid else f"{idle} of {paid}"
    return f"{upper}{hours} {UNIT_WORDS[figure['unit']]} ({part})"


def _value(document: AuditDocument, figure: IdleCapacityDocument) -> str:
    """What the hours are worth, and how much of it the avoidable and lost dollars have already."""
    if figure["list_usd"] is None:
        return "; what they cost is not known."
    worth = f", worth {Figure(figure['list_usd'], rounding=ROUND_NEAREST)} at {_price(document)}"
    if document["bill"]["basis"] == "prepaid":
        return f"{worth}. The capacity is prepaid: using it better saves no dollars now."
    # a fix may add a cost of its own, such as a volume: the totals have what is left
    wasted = (document["avoidable_usd"] or Decimal(0)) + (document["lost_usd"] or Decimal(0))
    counted = Figure(min(figure["counted_usd"] or Decimal(0), wasted), rounding=ROUND_NEAREST)
    if counted.usd:
        return f"{worth}. Of this, {counted} is counted above; the rest is no certain saving."
    if _has_known_change(document):
        return f"{worth}. None of it is counted above: it is no certain saving."
    return f"{worth}. This is no saving: no change is certain to save it."


def is_value_estimated(document: AuditDocument) -> bool:
    """Whether what a job's hours are worth rests on an estimate, of prepaid ones too."""
    bill = document["bill"]
    prepaid = any(note.startswith(PREPAID_ESTIMATE_PREFIX) for note in bill["notes"])
    return prepaid or bool(bill["estimated"])


def _price(document: AuditDocument) -> str:
    if is_value_estimated(document):
        return "an estimated rate"
    return "your own prices" if document["bill"]["price_kind"] == "own" else "list price"


def _has_known_change(document: AuditDocument) -> bool:
    """Whether a finding names a change, or may be missing since not all was judged."""
    named = any(Bucket(one["bucket"]).is_counted and one["fix"] for one in document["findings"])
    return named or document["judged"] != Judged.YES


def _idle_advice_text(figure: IdleCapacityDocument) -> str:
    """What to look at, the likeliest cause first."""
    places = [_IDLE_ADVICE[cause] for cause in figure["likely_causes"] if cause in _IDLE_ADVICE]
    if not places:
        return "A profile shows why."
    return f"Look at {', then '.join(places)}; a profile shows more."


def _hours_text(hours: Decimal) -> str:
    """Whole hours, from ten on."""
    return format_number(hours, 0 if hours >= _TEN else 1)
