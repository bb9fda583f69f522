"""What estimated rates do to a finding: a new type's saving is possible at most, dollars say so."""

from __future__ import annotations

from dataclasses import replace

from sageaudit.domain.bill.change import SetType
from sageaudit.domain.bill.finding import Bucket, Confidence, Found
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import Market

_MAY_NOT_SELL = "a possible saving, as SageMaker may not sell the type here"
_DOLLARS = "Its dollars rest on an estimated rate."


def possible_at_most(found: Found, job: Job, market: Market) -> Found:
    """The same advice; possible at most where the rate of its new type is an estimate."""
    how = estimate_of(found, job, market)
    if how is None:
        return found
    said = _and(found.caution, f"{how}: {_MAY_NOT_SELL}.")
    if not found.bucket.counted:
        return replace(found, caution=said)
    return replace(found, confidence=Confidence.HEURISTIC, bucket=Bucket.POSSIBLE, caution=said)


def estimate_of(found: Found, job: Job, market: Market) -> str | None:
    """How the rate of a finding's new type was estimated; None for a known one, and without."""
    if not isinstance(found.change, SetType):
        return None
    rate = market.hourly(job.region, job.kind, found.change.instance_type)
    return None if rate is None else rate.estimated


def marked(found: Found) -> Found:
    """The same finding, which says that the dollars in its text and evidence, if any, are about."""
    if "$" in found.summary or any("usd" in key.split("_") for key in found.evidence):
        return replace(found, caution=_and(found.caution, _DOLLARS))
    return found


def _and(caution: str | None, said: str) -> str:
    return f"{caution} {said}" if caution else said
