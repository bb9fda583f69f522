"""Audits recordings, and compares types for them as `what-if` does."""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from sageaudit.adapters.files import recording
from sageaudit.cli.views.what_if import what_if_document
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


def property_settings(examples: int, *, money: bool = True) -> Callable[[Any], Any]:
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


def audited(job_recording: Document) -> Audit:
    """Audits a recording as `sageaudit audit --recording` does, with the default policy."""
    run = measure_recording(recording.parse_job(job_recording))
    return audit_job(run.job, run.usage, run.market, Policy(), _ruleset(), now=run.now)


def judged(job_recording: Document) -> AuditDocument:
    """Returns the document of a recording's audit."""
    return document(audited(job_recording))


def candidates(job_recording: Document) -> list[Document]:
    """Returns the rows of `what-if` with the policy's default headroom."""
    run = measure_recording(recording.parse_job(job_recording))
    rows: list[Document] = what_if_document(run, ())["candidates"]
    return rows


def savings(job_recording: Document) -> dict[str, Decimal]:
    """Returns certain savings by type: types with known rates that fit and cost less."""
    return {
        row["type"]: row["saving_usd"]
        for row in candidates(job_recording)
        if row["fits"]
        and not row["estimated"]
        and row["saving_usd"] is not None
        and row["saving_usd"] > 0
    }


def counted(audit: AuditDocument) -> Decimal:
    """Returns avoidable, lost and exempt dollars together; unknown ones count as 0."""
    exempt = [
        finding["saving_alone_usd"] or Decimal(0)
        for finding in audit["findings"]
        if finding["exempt"]
    ]
    counted_usd = (audit["avoidable_usd"] or Decimal(0)) + (audit["lost_usd"] or Decimal(0))
    return counted_usd + sum(exempt, Decimal(0))


def machine_findings(audit: AuditDocument) -> Iterator[FindingDocument]:
    """Yields the counted findings except those of EXEMPT rules."""
    for finding in audit["findings"]:
        if finding["bucket"] in {"avoidable", "lost"} and finding["rule"] not in EXEMPT:
            yield finding


def dollars(findings: Iterable[FindingDocument]) -> Decimal:
    """Returns the sum of the findings' savings."""
    return sum((finding["saving_usd"] or Decimal(0) for finding in findings), Decimal(0))


def with_series_changed(
    job_recording: Document, change: Callable[[Document], Document | None]
) -> Document:
    """Returns the recording with each series changed, or removed if `change` returns None."""
    series = (
        change({**line, "values": [*line["values"]]}) for line in job_recording["metrics"]["series"]
    )
    metrics = {**job_recording["metrics"], "series": [line for line in series if line is not None]}
    return {**job_recording, "metrics": metrics}


def with_values(
    job_recording: Document,
    chosen: Callable[[Document], object],
    change: Callable[[int, float], Any],
) -> Document:
    """Returns the recording with the known values of the chosen series changed, by minute."""

    def changed(line: Document) -> Document:
        if chosen(line):
            line["values"] = [
                value if value is None else change(minute, value)
                for minute, value in enumerate(line["values"])
            ]
        return line

    return with_series_changed(job_recording, changed)


def findings_line(audit: AuditDocument) -> str:
    """Returns the counted findings in one line, for the message of a failure."""
    lines = [
        f"{finding['rule']} ({finding['confidence']}) ${finding['saving_usd']}: "
        + ", ".join(f"{fix['old']} -> {fix['new']}" for fix in finding["fix"])
        for finding in audit["findings"]
        if finding["bucket"] in {"avoidable", "lost"} and finding["saving_usd"]
    ]
    return f"total ${audit['bill']['total_usd']}; " + ("; ".join(lines) or "nothing counted")
