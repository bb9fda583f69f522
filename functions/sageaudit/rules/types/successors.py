"""The newer types that take the place of one of an old generation."""

from __future__ import annotations

from collections.abc import Collection

from sageaudit.domain.bill.type_vetoes import image_refused
from sageaudit.domain.prices.market import InstanceType, Rate
from sageaudit.rules import api


def hourly_rate(case: api.JobCase, instance_type: InstanceType) -> Rate | None:
    """What the type costs where and how the job ran."""
    return case.market.hourly(case.job.region, case.job.kind, instance_type.name)


def said(rate: Rate) -> str:
    """`$0.230`, or `about $0.230 (estimated)` for a rate that nobody has read."""
    return f"about ${rate.usd:.3f} (estimated)" if rate.is_estimate else f"${rate.usd:.3f}"


def successors(case: api.JobCase, today: InstanceType, refused: Collection[str]) -> str:
    """A sentence that names those of the table which the job could take; empty without any.

    `refused`: types on which the run is known not to fit.

    One without a price is said to have none: it may not be sold there.
    """
    names = [
        row.name if hourly_rate(case, row) else f"{row.name} (no price known here)"
        for row in _current(case, today)
        if row.name not in refused and image_refused(case.job, today, row) is None
    ]
    return f"Its successors: {' or '.join(names)}." if names else ""


def image_bars_all(case: api.JobCase, today: InstanceType) -> bool:
    """Whether there are successors, and the run's image is for none of their GPUs."""
    rows = _current(case, today)
    return bool(rows) and all(image_refused(case.job, today, row) for row in rows)


def _current(case: api.JobCase, today: InstanceType) -> list[InstanceType]:
    known = (case.market.types.get(name) for name in today.successors)
    return [
        row for row in known if row is not None and not row.legacy and case.job.kind in row.kinds
    ]
