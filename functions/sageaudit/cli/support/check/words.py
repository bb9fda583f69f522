"""Sentences about a checked request that the terminal, a pull request and annotations share."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.domain.bill.finding import Bucket, Severity
from sageaudit.domain.job.duration import duration
from sageaudit.domain.request.forecast import Basis
from sageaudit.output.text.money import usd
from sageaudit.output.text.words import assignment, counted


def cost_sentence(cost: dict[str, Any], kind: str) -> str:
    """What the job costs at most, with the date of the prices."""
    hourly = f"{usd(cost['hourly_usd'])} an hour" if cost["hourly_usd"] is not None else ""
    if cost["at_most_usd"] is None:
        rate = f" It costs {hourly}." if hourly else ""
        why = cost["why_not_known"]
        option = " (give --region)" if why == "the region is not known" else ""
        return f"What it costs at most is not known: {why}{option}.{rate}"
    about = "about " if cost["estimated"] else ""
    amount = f"At most {about}{usd(cost['at_most_usd'])}"
    dated = f" Prices of {cost['price_as_of']}." if cost["price_as_of"] else ""
    lacks = f" Not in it: {'; '.join(cost['missing'])}." if cost["missing"] else ""
    guess = f" {cost['estimated'][0]}." if cost["estimated"] else ""
    if kind == "tuning":
        many = counted(cost["jobs"], "training job")
        return f"{amount}: {many}, each to its limit.{lacks}{guess}"
    limit = duration(cost["limit_s"])
    default = ", AWS's default" if cost["limit_is_default"] else ""
    return f"{amount}: {hourly} up to the limit of {limit}{default}.{dated}{lacks}{guess}"


def history_sentence(history: dict[str, Any] | None) -> str | None:
    """What the family's earlier runs cost and took; None where no history was read."""
    if history is None:
        return None
    if history["first_run"]:
        return "First run of its family: the history has no earlier one."
    runs = counted(history["runs"], "earlier run")
    if not history["compared_runs"]:
        return (
            f"{runs} of its family, none completed on these instances: what it will cost is not"
            " known from them."
        )
    cost, time = history["usd"], history["seconds"]
    alike = counted(history["compared_runs"], "completed run")
    dollars = f"about {usd(cost['median'])}{_range(cost, usd)}" if cost else "at unknown cost"
    took = f" in {duration(time['median'])}{_range(time, duration)}" if time else ""
    failed = history["failed_runs"]
    lost = f" {failed} of {runs} failed." if failed else ""
    return f"Will cost {dollars}{took}, by {alike} of its family on the same instances.{lost}"


def _range(span: dict[str, Decimal], said: Any) -> str:
    low, high = said(span["low"]), said(span["high"])
    return "" if low == high else f" ({low} to {high})"


def saving_words(row: dict[str, Any]) -> str:
    """The dollars of a finding, with what they rest on; empty without any."""
    amount = row["saving_usd"]
    if amount is None or amount <= 0 or row["not_counted"]:
        return ""
    basis = Basis(row["saving_basis"])
    possible = "possible: " if Bucket(row["bucket"]) is Bucket.POSSIBLE else ""
    up_to = "up to " if basis is Basis.LIMIT else ""
    if row["source"] == "history":
        return f"{possible}{usd(amount)} in that run"
    return f"{possible}{up_to}{usd(amount)} {basis.said}"


def fix_lines(row: dict[str, Any]) -> list[str]:
    """Each parameter to change, as `path = new  # was old`."""
    lines = []
    for fix in row["fix"]:
        if row["source"] == "api":
            lines.append(f"{fix['parameter']} -> {fix['new']}")
            continue
        was = "not set" if fix["old"] is None else str(fix["old"])
        by = fix["pipeline_parameter"]
        source = f", the default of the pipeline parameter {by}" if by else ""
        name = fix["argument"] or fix["parameter"]
        named: FixDocument = {"parameter": name, "old": fix["old"], "new": fix["new"]}
        lines.append(f"{assignment(named)}  # now: {was}{source}")
    return lines


def summed_up(document: Any) -> str:
    """How many findings there are, by severity."""
    rows = [
        row for job in document["jobs"] for row in job["findings"] if row["not_counted"] is None
    ]
    if not document["jobs"]:
        return "Nothing to check: there is no SageMaker job in it."
    if not rows:
        return "No findings."
    counts = Counter(row["severity"] for row in rows)
    parts = [f"{counts[word]} {word}" for word in map(str, Severity) if counts[word]]
    return f"{counted(len(rows), 'finding')}: {', '.join(parts)}."
