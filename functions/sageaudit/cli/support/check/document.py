"""What `sageaudit check` found in one file, as a document: schema 1 of its --output json.

Keys are always present and only ever added. Money is USD, rounded to 6 decimals; what is not known
is null. The other outputs show this document.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypedDict

from sageaudit.cli.support.check.findings import Lines, findings, line_of
from sageaudit.domain.audit.finding_document import (
    clear_names,
    not_applicable_documents,
    rounded,
    unknown_documents,
)
from sageaudit.domain.request.forecast import Cost, FamilyForecast, Span
from sageaudit.domain.request.recognise import Form
from sageaudit.workflows.check.run import Checked

SCHEMA = 1


class CheckedFile(TypedDict):
    """One file."""

    schema: int
    file: str
    form: str
    form_said: str
    api: str
    """The SDK whose model of AWS's API the requests were compared with."""
    jobs: list[dict[str, Any]]
    not_checked: list[str]


def document(
    name: str,
    form: Form,
    api: str,
    checked: Sequence[Checked],
    lines: Lines,
    left_out: Sequence[str],
) -> CheckedFile:
    """The document of one file; `lines` are those of its keys."""
    return {
        "schema": SCHEMA,
        "file": name,
        "form": form.value,
        "form_said": form.said,
        "api": api,
        "jobs": [_job(one, lines) for one in checked],
        "not_checked": list(left_out),
    }


def _job(one: Checked, lines: Lines) -> dict[str, Any]:
    request, job = one.request, one.job
    return {
        "label": request.label,
        "name": request.name,
        "kind": request.kind.value,
        "line": line_of(request, (), lines),
        "account": request.account,
        "region": job.region if job else None,
        "family": one.family,
        "instances": job.instances if job else None,
        "note": request.note,
        "trial": request.trial_of is not None,
        "cost": _cost(one.cost, one),
        "history": _history(one.forecast),
        "findings": findings(one, lines),
        "not_known": [
            {"path": request.said(place), "why": value.why}
            for place, value in request.unknown.items()
        ],
        "unreadable": one.unreadable,
        "unknown": unknown_documents(one.outcomes),
        "not_applicable": not_applicable_documents(one.outcomes),
        "clear": clear_names(one.outcomes),
        "notes": list(one.notes),
    }


def _cost(cost: Cost | None, one: Checked) -> dict[str, Any]:
    billed = cost.at_most if cost else None
    rates = [line.rate for line in billed.lines if line.rate is not None] if billed else []
    return {
        "at_most_usd": rounded(cost.usd) if cost else None,
        "why_not_known": cost.why if cost else one.unreadable,
        "hourly_usd": rounded(cost.hourly_usd) if cost else None,
        "limit_s": cost.limit.seconds if cost else None,
        "limit_is_default": cost.limit.default if cost else False,
        "jobs": cost.times if cost else 1,
        "missing": list(billed.gaps) if billed else [],
        "estimated": list(billed.estimated) if billed else [],
        "price_as_of": min((rate.as_of for rate in rates if rate.as_of), default=None),
        "price_source": rates[0].source if rates else None,
    }


def _history(forecast: FamilyForecast | None) -> dict[str, Any] | None:
    if forecast is None:
        return None
    return {
        "runs": forecast.runs,
        "failed_runs": forecast.failed,
        "first_run": forecast.runs == 0,
        "compared_runs": forecast.alike,
        "usd": _span(forecast.usd),
        "seconds": _span(forecast.seconds),
        "last_run": forecast.last,
        "last_ended_at": forecast.last_ended_at,
    }


def _span(span: Span | None) -> dict[str, Decimal | None] | None:
    if span is None:
        return None
    return {name: rounded(getattr(span, name)) for name in ("median", "low", "high")}
