"""The idle capacity of a tuning job: the sum over the training jobs that have a figure.

It is a lower bound where some have none, and the roll-up says how many. Where those that have one
are less than 70% of the dollars (of the jobs, where dollars are not known), it is no figure of the
tuning job. Hours of GPUs and of vCPUs are never added: a tuning job with both has no figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument, IdleCapacityDocument
from sageaudit.domain.bill.idle_capacity import IdleCapacity
from sageaudit.domain.job.job import whole_sum
from sageaudit.domain.usage.measurements import MIN_COVERAGE

_ZERO = Decimal(0)


def idle_of_children(
    children: Sequence[AuditDocument], own_usd: Decimal
) -> tuple[IdleCapacity | None, str | None]:
    """The sum, and a sentence where a part or all of it is not known.

    `own_usd`: what the tuning rules' findings count beside the children's own. They drop whole
    trials, so they take the idle share of what the children's findings left.
    """
    if not children:
        return None, None
    figures = [figure for child in children if (figure := child["idle_capacity"])]
    without = len(children) - len(figures)
    units = {figure["unit"] for figure in figures}
    if len(units) > 1:
        return None, "the training jobs ran on GPUs and on CPUs"
    why = f"{without} of {len(children)} training jobs have no figure" if without else None
    if _covered(children) < MIN_COVERAGE:
        return None, why
    causes = dict.fromkeys(cause for figure in figures for cause in figure["look_at"])
    list_usd = whole_sum(figure["list_usd"] for figure in figures)
    counted_usd = whole_sum(figure["counted_usd"] for figure in figures)
    if list_usd is not None and counted_usd is not None:
        counted_usd = min(counted_usd + own_usd * _idle_share_left(children), list_usd)
    return IdleCapacity(
        unit=figures[0]["unit"],
        paid=sum((figure["paid"] for figure in figures), _ZERO),
        worked=sum((figure["worked"] for figure in figures), _ZERO),
        list_usd=list_usd,
        counted_usd=counted_usd,
        look_at=tuple(sorted(causes, key=lambda cause: cause == "profile")),
    ), why


def _covered(children: Sequence[AuditDocument]) -> Decimal:
    """The share (0..1) of the children's dollars, else of their number, that has a figure."""
    paid = [child["bill"]["total_usd"] for child in children]
    known = [usd for usd in paid if usd is not None]
    weights = known if len(known) == len(paid) and sum(known, _ZERO) else [Decimal(1)] * len(paid)
    having = zip(children, weights, strict=True)
    return sum((w for child, w in having if child["idle_capacity"]), _ZERO) / sum(weights, _ZERO)


def _idle_share_left(children: Sequence[AuditDocument]) -> Decimal:
    """Of the dollars that no child's finding took, the share (0..1) of idle capacity."""
    left = idle = _ZERO
    for child in children:
        figure, total = child["idle_capacity"], child["bill"]["total_usd"]
        claimed = (child["avoidable_usd"] or _ZERO) + (child["lost_usd"] or _ZERO)
        left += max((total or _ZERO) - claimed, _ZERO)
        idle += _uncounted(figure) if figure else _ZERO
    return min(idle / left, Decimal(1)) if left else _ZERO


def _uncounted(figure: IdleCapacityDocument) -> Decimal:
    return (figure["list_usd"] or _ZERO) - (figure["counted_usd"] or _ZERO)
