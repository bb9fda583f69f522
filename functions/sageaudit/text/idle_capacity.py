"""The sentence on capacity that was paid for and not used, in one form for every channel.

It is shown where somebody should look: the JSON always has the figure.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument, IdleCapacityDocument
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.usage.idle_causes import LookAt
from sageaudit.domain.usage.work_share import Unit
from sageaudit.text.money import share, usd
from sageaudit.text.words import number

IDLE_LABEL = "Idle capacity"
_FROM_USD = Decimal(10)
"""Idle list value beside what is counted above, from which it is shown: as much as makes a finding
medium by default. Our choice."""
_FROM_HOURS: dict[Unit, Decimal] = {"gpu_hours": Decimal(10), "vcpu_hours": Decimal(200)}
"""The same where nothing is priced: about $10 at the cheapest rates of either. Our choice."""
_IDLE_OVER: dict[Unit, Decimal] = {"gpu_hours": Decimal("0.2"), "vcpu_hours": Decimal("0.5")}
"""Share of the paid hours up to which a job is healthy. A vCPU is half a core, so half of the vCPUs
can be all of the cores. Our choice."""
_WORDS: dict[Unit, str] = {"gpu_hours": "GPU-hours", "vcpu_hours": "vCPU-hours"}
_LOOK_AT: dict[LookAt, str] = {
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
    # A document that was stored before this key existed lacks it.
    figure = document.get("idle_capacity")
    if figure is None or not _worth_a_line(figure):
        return None
    part = share(figure["idle"], figure["paid"])
    upper = "up to " if document["bill"]["basis"] == "upper_bound" else ""
    hours = f"{upper}{_hours(figure['idle'])} of {_hours(figure['paid'])} {_WORDS[figure['unit']]}"
    return (
        f"{hours} ({part}) were paid for but not used{_value(document, figure)}. "
        f"{_advice(document, figure)}"
    )


def _worth_a_line(figure: IdleCapacityDocument) -> bool:
    if figure["idle"] <= figure["paid"] * _IDLE_OVER[figure["unit"]]:
        return False
    if figure["list_usd"] is None:
        return figure["idle"] >= _FROM_HOURS[figure["unit"]]
    return figure["list_usd"] - (figure["counted_usd"] or 0) >= _FROM_USD


def _value(document: AuditDocument, figure: IdleCapacityDocument) -> str:
    if figure["list_usd"] is None:
        return "; their price is not known"
    own = document["bill"]["price_kind"] == "own"
    at = "your own prices" if own else "list price"
    worth = f"{usd(figure['list_usd'])} at {at}"
    if document["bill"]["basis"] == "prepaid":
        return f": {worth}, but the capacity is prepaid"
    counted = figure["counted_usd"]
    return f": {worth}, {usd(counted) if counted else 'none'} of it counted above"


def _advice(document: AuditDocument, figure: IdleCapacityDocument) -> str:
    """What to look at; and that no change is certain to help, where no finding names one."""
    fixed = any(Bucket(f["bucket"]).counted and f["fix"] for f in document["findings"])
    certain = fixed or document["judged"] != Judged.YES
    start = "" if certain else "No change is certain to save it: "
    places = [_LOOK_AT[cause] for cause in figure["look_at"] if cause in _LOOK_AT]
    text = f"look at {', then '.join(places)}, and take a profile" if places else "take a profile"
    sentence = f"{start}{text}."
    return sentence[0].upper() + sentence[1:]


def _hours(hours: Decimal) -> str:
    return number(hours, 0 if hours >= _TEN else 1)
