"""Thousands of made-up audits, always the same for one seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any, cast

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.earlier import RunFacts
from sageaudit.domain.audit.record import Entry
from sageaudit.domain.job.job import Purchase
from tests.adapters.history.entries import entry, finding, key

LAST_END = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ACCOUNTS = ("111122223333", "444455556666")
REGIONS = ("us-east-1", "eu-central-1")
OWNERS = (None, *(f"person-{number:02d}" for number in range(40)))
TYPES = (None, "ml.g5.xlarge", "ml.g5.2xlarge", "ml.p4d.24xlarge", "ml.m5.large", "ml.c6i.4xlarge")
RULES = {
    "gpu-underused": "avoidable",
    "idle-tail": "avoidable",
    "download-dominates": "avoidable",
    "volume-oversized": "avoidable",
    "failed-spend": "lost",
    "spot-not-used": "possible",
    "mixed-precision-candidate": "possible",
}
_BUCKETS = ("avoidable", "lost", "possible")


def many_audits(
    count: int,
    *,
    seed: int = 1,
    days: int = 60,
    last_end: datetime = LAST_END,
    families: int = 200,
    owners: Sequence[str | None] = OWNERS,
    accounts: Sequence[str] = ACCOUNTS,
    regions: Sequence[str] = REGIONS,
) -> Iterator[Entry]:
    """Audits of different jobs that ended in the days before `last_end`, in no order of time.

    Few families have most of the jobs. One job in 50 could not be audited, one in 40 has no price.
    """
    chance = random.Random(seed)
    weights = list(accumulate(1 / (place + 1) for place in range(families)))
    for number in range(count):
        [family] = chance.choices(range(families), cum_weights=weights)
        ended_at = last_end - timedelta(seconds=chance.randrange(days * 86_400))
        account, region = accounts[family % len(accounts)], chance.choice(regions)
        name = f"family-{family:03d}-{number:06d}"
        yield _audit(
            chance,
            name,
            ended_at,
            account=account,
            region=region,
            family=f"training/family-{family:03d}",
            owner=owners[family * 7 % len(owners)],
            arn=f"arn:aws:sagemaker:{region}:{account}:training-job/{name}",
        )


def _audit(chance: random.Random, name: str, ended_at: datetime, **job: Any) -> Entry:
    total_usd = Decimal(chance.randrange(1, 50_000_000)).scaleb(-6)
    unpriced, unauditable = chance.random() < 1 / 40, chance.random() < 1 / 50
    found = [] if unauditable else _findings(chance, total_usd, known=not unpriced)
    sums = (
        {
            bucket: sum((one["saving_usd"] for one in found if one["bucket"] == bucket), Decimal(0))
            for bucket in _BUCKETS
        }
        if not unpriced and not unauditable
        else dict.fromkeys(_BUCKETS)
    )
    created_at = ended_at - timedelta(minutes=chance.randrange(5, 600))
    given = entry(
        name,
        job={
            **job,
            "status": "Failed" if any(one["bucket"] == "lost" for one in found) else "Completed",
            "created_at": created_at.isoformat(),
            "ended_at": ended_at.isoformat(),
        },
        bill={"total_usd": None if unpriced or unauditable else total_usd},
        findings=found,
        unauditable="It was deleted before it was described." if unauditable else None,
        judged="no" if unauditable else chance.choice(("yes", "yes", "yes", "partly")),
        avoidable_usd=sums["avoidable"],
        lost_usd=sums["lost"],
        lost_up_to_usd=sums["lost"],
        possible_usd=sums["possible"],
    )
    facts = RunFacts(Purchase.ON_DEMAND, instance_type=chance.choice(TYPES), instance_count=1)
    return replace(
        given,
        key=replace(key(name, created_at), arn=job["arn"]),
        last_modified_at=ended_at,
        facts=None if unauditable else facts,
    )


def _findings(chance: random.Random, total_usd: Decimal, *, known: bool) -> list[dict[str, Any]]:
    """Up to three findings, each of at most a fifth of the bill."""
    return [
        finding(
            rule,
            bucket=RULES[rule],
            severity=chance.choice(("info", "low", "medium", "high")),
            saving_usd=(total_usd * chance.randrange(200) / 1000).quantize(Decimal("0.000001"))
            if known
            else None,
            saving_alone_usd=None,
            evidence={},
            fix=[],
        )
        for rule in chance.sample(list(RULES), chance.choice((0, 0, 1, 1, 2, 3)))
    ]


def several_versions(count: int, **of: Any) -> Iterator[tuple[Entry, ...]]:
    """The versions of each of so many audits, the oldest first: what a history may hold.

    One in four was recorded before with other dollars, some of them under another owner, type or
    day; one in eight is a tuning job, which repeats dollars and adds one rule of its own; one in
    nine rests on an estimated rate, one in eleven lacks a part of its bill.
    """
    chance = random.Random(count)
    for number, given in enumerate(many_audits(count, **of)):
        newest = _changed(given, number)
        yield (_older(newest, chance), newest) if number % 4 == 0 else (newest,)


def _changed(given: Entry, number: int) -> Entry:
    document = given.document
    job: dict[str, Any] = {**document["job"]}
    bill: dict[str, Any] = {**document["bill"]}
    if number % 9 == 0:
        said = "the rate is estimated"
        bill |= {"estimated": [said], "missing": [said]}
    if number % 11 == 0:
        bill["missing"] = [*bill.get("estimated", ()), "no price of the storage"]
    own: dict[str, Any] = {}
    if number % 8 == 5:
        arn = str(job["arn"]).replace("training-job", "hyper-parameter-tuning-job")
        job |= {"kind": "tuning", "arn": arn}
        given = replace(given, key=replace(given.key, arn=arn))
        own = {"rollup": True, "own_rules": [f["rule"] for f in document["findings"][:1]]}
    made = cast("AuditDocument", {**document, "job": job, "bill": bill, **own})
    return replace(given, document=made)


def _older(newest: Entry, chance: random.Random) -> Entry:
    """An earlier version of the same run."""
    document, job = newest.document, dict(newest.document["job"])
    moved = chance.randrange(4)
    if moved == 1:
        job["owner"] = "person-before"
    if moved == 2:
        earlier = datetime.fromisoformat(str(job["ended_at"])) - timedelta(days=1)
        job["ended_at"] = earlier.isoformat()
    usd = Decimal(chance.randrange(1, 9_000_000)).scaleb(-6)
    made = {**document, "job": job, "bill": {**document["bill"], "total_usd": usd}}
    made |= {"avoidable_usd": usd / 4, "findings": document["findings"][1:], "unauditable": None}
    return replace(
        newest,
        document=cast("AuditDocument", made),
        last_modified_at=newest.last_modified_at - timedelta(minutes=5),
        facts=None if moved == 3 else newest.facts,
    )
