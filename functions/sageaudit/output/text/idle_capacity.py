"""The sentence on capacity that was paid for and not used, in one form for every channel.

It is shown where somebody should look: the JSON always has the figure.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.alert.audit_figures import idle_worth_a_line
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.document import AuditDocument, IdleCapacityDocument
from sageaudit.domain.bill.bill_facts import VALUE_ESTIMATED
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.bill.idle_capacity import LookAt, Unit
from sageaudit.output.text.money import NEAREST, Figure, share
from sageaudit.output.text.words import number

IDLE_LABEL = "Idle capacity"
UNIT_WORDS: dict[Unit, str] = {"gpu_hours": "GPU-hours", "vcpu_hours": "vCPU-hours"}
_LOOK_AT: dict[LookAt, str] = {
    "standstill": "why the GPUs stood still for half an hour or more",
    "gpu_use": "whether the code uses the GPU at all",
    "data_loader": "the data loader (the CPU was busy while the GPU waited)",
    "communication": "the communication between hosts (all were used alike)",
    "batch_size": "a larger batch (GPU memory was free)",
    "parallel_work": "whether the code uses every vCPU",
}
"""A profile is asked for last, in words of its own."""
_TEN = Decimal(10)


def idle_sentence(document: AuditDocument) -> str | None:
    """One or two plain sentences; None where there is no figure or too little to speak of."""
    figure = document["idle_capacity"]
    if figure is None or not idle_worth_a_line(figure):
        return None
    spent = f"{_hours_of(document, figure)} were paid for but not used"
    return f"{spent}{_value(document, figure)} {_advice(figure)}"


def idle_headline(document: AuditDocument) -> str:
    """`40 of 48 GPU-hours (83%) not used, price not known`; what is worth dollars is no saving."""
    figure = document["idle_capacity"]
    if figure is None:
        return "its idle hours are not known"
    hours = f"{_hours_of(document, figure)} not used"
    if figure["list_usd"] is None:
        return f"{hours}, price not known"
    prepaid = ", prepaid" if document["bill"]["basis"] == "prepaid" else ""
    return f"{hours}, worth {Figure(figure['list_usd'], rough=NEAREST)}{prepaid}"


def _hours_of(document: AuditDocument, figure: IdleCapacityDocument) -> str:
    part = share(figure["idle"], figure["paid"])
    upper = "up to " if document["bill"]["basis"] == "upper_bound" else ""
    idle, paid = shown_hours(figure["idle"]), shown_hours(figure["paid"])
    # one figure twice would say that all of it was idle
    hours = f"nearly all of {paid}" if idle == paid else f"{idle} of {paid}"
    return f"{upper}{hours} {UNIT_WORDS[figure['unit']]} ({part})"


def _value(document: AuditDocument, figure: IdleCapacityDocument) -> str:
    """What the hours are worth, and how much of it the avoidable and lost dollars have already."""
    if figure["list_usd"] is None:
        return "; what they cost is not known."
    worth = f", worth {Figure(figure['list_usd'], rough=NEAREST)} at {_price(document)}"
    if document["bill"]["basis"] == "prepaid":
        return f"{worth}. The capacity is prepaid: using it better saves no dollars now."
    # a fix may add a cost of its own, such as a volume: the totals have what is left
    wasted = (document["avoidable_usd"] or Decimal(0)) + (document["lost_usd"] or Decimal(0))
    counted = Figure(min(figure["counted_usd"] or Decimal(0), wasted), rough=NEAREST)
    if counted.usd:
        return f"{worth}. Of this, {counted} is counted above; the rest is no certain saving."
    if _fixed(document):
        return f"{worth}. None of it is counted above: it is no certain saving."
    return f"{worth}. This is no saving: no change is certain to save it."


def value_is_estimate(document: AuditDocument) -> bool:
    """Whether what a job's hours are worth rests on an estimate, of prepaid ones too."""
    bill = document["bill"]
    prepaid = any(note.startswith(VALUE_ESTIMATED) for note in bill["notes"])
    return prepaid or bool(bill["estimated"])


def _price(document: AuditDocument) -> str:
    if value_is_estimate(document):
        return "an estimated rate"
    return "your own prices" if document["bill"]["price_kind"] == "own" else "list price"


def _fixed(document: AuditDocument) -> bool:
    """Whether a finding names a change, or may be missing since not all was judged."""
    named = any(Bucket(one["bucket"]).counted and one["fix"] for one in document["findings"])
    return named or document["judged"] != Judged.YES


def _advice(figure: IdleCapacityDocument) -> str:
    """What to look at, the likeliest cause first."""
    places = [_LOOK_AT[cause] for cause in figure["look_at"] if cause in _LOOK_AT]
    if not places:
        return "A profile shows why."
    return f"Look at {', then '.join(places)}; a profile shows more."


def shown_hours(hours: Decimal) -> str:
    """Whole hours, from ten on."""
    return number(hours, 0 if hours >= _TEN else 1)
