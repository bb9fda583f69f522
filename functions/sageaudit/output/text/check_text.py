"""The sentences about a checked request: its cost, its family's runs, and a finding's dollars."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.job.job import duration_text
from sageaudit.domain.money import CENT, format_rate, format_usd
from sageaudit.domain.request.forecast import DurationBasis
from sageaudit.output.text.words import assignment_line, count_text, setting_text


def cost_text(cost: dict[str, Any], kind: str) -> str:
    """Returns the highest cost of a job of this kind, and its basis; or why it is not known."""
    hourly_text = (
        f"{format_rate(cost['hourly_usd'])} an hour" if cost["hourly_usd"] is not None else ""
    )
    if cost["at_most_usd"] is None:
        rate = f" It costs {hourly_text}." if hourly_text else ""
        reason = cost["why_not_known"]
        option = " (give the region)" if reason == "the region is not known" else ""
        return f"Its maximum cost is not known: {reason}{option}.{rate}"
    about_text = "about " if cost["estimated"] else ""
    amount = f"At most {about_text}{format_usd(cost['at_most_usd'])}"
    date_text = f" Prices of {cost['price_as_of']}." if cost["price_as_of"] else ""
    missing = f" Not included: {'; '.join(cost['missing'])}." if cost["missing"] else ""
    estimate_text = f" {cost['estimated'][0]}." if cost["estimated"] else ""
    limit_s = cost["limit_s"]
    limit = "" if limit_s is None else f"up to the limit of {duration_text(limit_s)}"
    if kind == "tuning":
        jobs_text = count_text(cost["jobs"], "training job")
        time_text = f"its training jobs, {limit}" if limit else f"{jobs_text}, each to its limit"
        return f"{amount}: {time_text}.{missing}{estimate_text}"
    attempts, volumes_usd = cost["attempts"], cost["volumes_usd"]
    attempts_text = f"{attempts} attempts (RetryPolicies), each " if attempts > 1 else ""
    if volumes_usd and volumes_usd >= CENT:
        hourly_text += f" for instances and {format_usd(volumes_usd)} for volumes,"
    default = ", AWS's default" if cost["limit_is_default"] else ""
    notes = f"{date_text}{missing}{estimate_text}"
    return f"{amount}: {attempts_text}{hourly_text} {limit}{default}.{notes}"


def history_text(history: dict[str, Any]) -> str:
    """Returns what the job will probably cost, by the earlier runs of its family."""
    if history["first_run"]:
        return "First run of its family: no earlier run is in the history."
    runs = count_text(history["runs"], "earlier run")
    if not history["compared_runs"]:
        return (
            f"{runs} of its family, none completed on these instances, so they do not"
            " show what it will cost."
        )
    cost_range, time_range = history["usd"], history["seconds"]
    compared_text = count_text(history["compared_runs"], "completed run")
    cost_text = (
        f"about {format_usd(cost_range['median'])}{_range(cost_range, format_usd)}"
        if cost_range
        else "at unknown cost"
    )
    duration_part = (
        f" in {duration_text(time_range['median'])}{_range(time_range, duration_text)}"
        if time_range
        else ""
    )
    failed_count = history["failed_runs"]
    failed_text = f" {failed_count} of {runs} failed." if failed_count else ""
    basis_text = f"{compared_text} of its family on the same instances"
    return f"Will probably cost {cost_text}{duration_part} (median of {basis_text}).{failed_text}"


def _range(span: dict[str, Decimal], format_value: Callable[[Decimal], str]) -> str:
    low_text, high_text = format_value(span["low"]), format_value(span["high"])
    return "" if low_text == high_text else f" ({low_text} to {high_text})"


def saving_text(row: dict[str, Any]) -> str:
    """Returns the finding's saving, or "" if it has no dollars or is not counted."""
    amount = row["saving_usd"]
    if amount is None or amount <= 0 or row["not_counted"]:
        return ""
    possible_text = "possible: " if Bucket(row["bucket"]) is Bucket.POSSIBLE else ""
    basis = DurationBasis(row["saving_basis"] or DurationBasis.HOUR)
    up_to_text = "up to " if basis is DurationBasis.LIMIT else ""
    return f"{possible_text}{up_to_text}{format_usd(amount)} {basis.label}"


def fix_text(fix: dict[str, Any], source: str) -> str:
    """Returns `path = new # now: old`; for a guess of the `source` "api", `path -> new`."""
    if source == "api" and fix["old"] is None:
        return f"{fix['parameter']} -> {fix['new']}"
    old = fix["old"]
    value_text = old if isinstance(old, str) else setting_text(old)
    old_text = "not set" if old is None else value_text
    pipeline_parameter = fix["pipeline_parameter"]
    origin = (
        f", the default of the pipeline parameter {pipeline_parameter}"
        if pipeline_parameter
        else ""
    )
    name = fix["argument"] or fix["parameter"]
    assignment: FixDocument = {"parameter": name, "old": fix["old"], "new": fix["new"]}
    return f"{assignment_line(assignment)}  # now: {old_text}{origin}"
