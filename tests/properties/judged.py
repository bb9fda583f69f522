"""Audits recordings, and compares types for them as `what-if` does."""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from sageaudit.adapters.files import recording
from sageaudit.cli.commands.what_if import what_if_document
from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules import catalogue
from sageaudit.rules.card import Ruleset
from sageaudit.workflows.audit.judge import audit_job
from sageaudit.workflows.recordings.jobs import measure_recording

Document = dict[str, Any]
CENT = Decimal("0.01")
MICRO = Decimal("0.000001")
"""Documents round to this: two figures of one sum may differ by it."""
EXEMPT = {
    "failed-spend": "a failed run is lost as a whole, regardless of its metrics",
    "limit-hit": "a run that a limit stopped is lost as a whole, too",
    "retry-storm": "it counts failed runs of the family, not what they used",
    "metric-plateau": "it reads the curve of an algorithm metric, not the machine",
}
"""Rules that do not depend on the machine's use, each with its reason."""


def held(examples: int, *, money: bool = True) -> Callable[[Any], Any]:
    """Returns the settings of a property: the same examples each time.

    `money`: whether `make test` runs more of them.
    """
    chosen = settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
    )

    def decorated(test: Any) -> Any:
        return pytest.mark.money(chosen(test)) if money else chosen(test)

    return decorated


@cache
def _ruleset() -> Ruleset:
    return catalogue.ruleset()


def audited(told: Document) -> Audit:
    """Audits a recording as `sageaudit audit --recording` does, with the default policy."""
    run = measure_recording(recording.parse_job(told))
    return audit_job(run.job, run.usage, run.market, Policy(), _ruleset(), now=run.now)


def judged(told: Document) -> AuditDocument:
    """Returns the document of a recording's audit."""
    return document(audited(told))


def candidates(told: Document) -> list[Document]:
    """Returns the rows of `what-if` with the policy's default headroom."""
    run = measure_recording(recording.parse_job(told))
    rows: list[Document] = what_if_document(run, ())["candidates"]
    return rows


def savings(told: Document) -> dict[str, Decimal]:
    """Returns certain savings by type: types with known rates that fit and cost less."""
    return {
        row["type"]: row["saving_usd"]
        for row in candidates(told)
        if row["fits"]
        and not row["estimated"]
        and row["saving_usd"] is not None
        and row["saving_usd"] > 0
    }


def counted(of: AuditDocument) -> Decimal:
    """Returns avoidable, lost and exempt dollars together; unknown ones count as 0."""
    exempt = [one["saving_alone_usd"] or Decimal(0) for one in of["findings"] if one["exempt"]]
    known = (of["avoidable_usd"] or Decimal(0)) + (of["lost_usd"] or Decimal(0))
    return known + sum(exempt, Decimal(0))


def of_the_machine(of: AuditDocument) -> Iterator[FindingDocument]:
    """Yields the counted findings except those of EXEMPT rules."""
    for one in of["findings"]:
        if one["bucket"] in {"avoidable", "lost"} and one["rule"] not in EXEMPT:
            yield one


def dollars(findings: Iterable[FindingDocument]) -> Decimal:
    """Returns the sum of the findings' savings."""
    return sum((one["saving_usd"] or Decimal(0) for one in findings), Decimal(0))


def told_otherwise(told: Document, change: Callable[[Document], Document | None]) -> Document:
    """Returns the recording with each series changed, or removed if `change` returns None."""
    series = (change({**one, "values": [*one["values"]]}) for one in told["metrics"]["series"])
    metrics = {**told["metrics"], "series": [one for one in series if one is not None]}
    return {**told, "metrics": metrics}


def with_values(
    told: Document, chosen: Callable[[Document], object], change: Callable[[int, float], Any]
) -> Document:
    """Returns the recording with the known values of the chosen series changed, by minute."""

    def changed(one: Document) -> Document:
        if chosen(one):
            one["values"] = [
                value if value is None else change(minute, value)
                for minute, value in enumerate(one["values"])
            ]
        return one

    return told_otherwise(told, changed)


def says(of: AuditDocument) -> str:
    """Returns the counted findings in one line, for the message of a failure."""
    told = [
        f"{one['rule']} ({one['confidence']}) ${one['saving_usd']}: "
        + ", ".join(f"{fix['old']} -> {fix['new']}" for fix in one["fix"])
        for one in of["findings"]
        if one["bucket"] in {"avoidable", "lost"} and one["saving_usd"]
    ]
    return f"total ${of['bill']['total_usd']}; " + ("; ".join(told) or "nothing counted")
