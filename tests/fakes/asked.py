"""A history to ask: audits of several families, owners, accounts and regions, also roll-ups."""

import random
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

from sageaudit.domain.audit.record import Entry
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.job import Purchase
from sageaudit.ports import History
from sageaudit.structs import replace
from tests.adapters.history.entries import entry, finding
from tests.fakes.families import run_summary

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ACCOUNTS, REGIONS = ("111122223333", "444455556666"), ("us-east-1", "eu-west-1")
FAMILIES, OWNERS = ("resnet", "bert", "tabular"), ("ana", "bo", None)
TEAMS = ("growth", "search", None)
"""Values of the cost tags team and project."""
RULES = ("gpu-idle", "failed-spend", "spot-not-used", "old-generation")
_FACTS = (
    run_summary(Purchase.SPOT, instance_type="ml.g5.xlarge", instance_count=2),
    run_summary(Purchase.ON_DEMAND, instance_type="ml.m5.xlarge"),
    None,
)
_BUCKETS = {"failed-spend": "lost", "spot-not-used": "possible"}
TYPES = ("ml.g5.xlarge", "ml.m5.large")


def audits(count: int, *, seed: int = 1, days: int = 40) -> Iterator[Entry]:
    """Audits of jobs that ended in the last days; every seventh is the roll-up of a tuning job."""
    chance = random.Random(seed)
    for number in range(count):
        yield _audit(chance, number, days)


def fill(history: History, count: int, *, seed: int = 1, days: int = 40) -> None:
    """Records them."""
    for made in audits(count, seed=seed, days=days):
        history.record(made)


def remembered(history: History) -> History:
    """The same history, which is asked each thing once."""

    def once(ask: Callable[..., Iterable[Any]]) -> Callable[..., list[Any]]:
        return cache(lambda *words, **more: [*ask(*words, **more)])

    kept: Any = SimpleNamespace(
        runs=once(history.runs), sums=once(history.sums), head=cache(history.head)
    )
    return cast("History", kept)


def _audit(chance: random.Random, number: int, days: int) -> Entry:
    account, region = chance.choice(ACCOUNTS), chance.choice(REGIONS)
    rollup = number % 7 == 6
    kind = "tuning" if rollup else chance.choice(("training", "training", "processing"))
    family, name = f"{kind}/{chance.choice(FAMILIES)}", f"job-{number:05d}"
    # some end at the same moment
    ended = NOW - timedelta(minutes=10 * chance.randrange(days * 144))
    findings = [_finding(chance, rule) for rule in RULES if chance.random() < 0.4]
    sums = {
        bucket: sum(
            (found["saving_usd"] for found in findings if found["bucket"] == bucket), Decimal(0)
        )
        for bucket in ("avoidable", "lost", "possible")
    }
    judged = chance.choice(("yes", "yes", "partly", "no"))
    changes: dict[str, Any] = {
        "findings": findings,
        "avoidable_usd": None if judged == "no" and not sums["avoidable"] else sums["avoidable"],
        "lost_usd": sums["lost"],
        "lost_up_to_usd": sums["lost"],
        "possible_usd": sums["possible"],
        "judged": judged,
        "rollup": rollup,
        "own_rules": [found["rule"] for found in findings][:1] if rollup else [],
    }
    arn = f"arn:aws:sagemaker:{region}:{account}:{_word(kind)}/{name}"
    job = {
        "name": name,
        "arn": arn,
        "kind": kind,
        "status": chance.choice(("Completed", "Completed", "Failed")),
        "account": account,
        "region": region,
        "family": family,
        "owner": chance.choice(OWNERS),
        "tags": {"team": TEAMS[number % 3], "project": TEAMS[number % 2]},
        "ended_at": ended.isoformat(),
    }
    total = sum(sums.values(), Decimal(chance.randrange(1, 9_000_000)).scaleb(-6))
    bill = _bill(None if chance.random() < 0.05 else total, number)
    made = entry(name, job=job, bill=bill, **changes)
    return replace(made, key=JobKey(arn, ended - timedelta(hours=2)), run=_FACTS[number % 3])


def _bill(total_usd: Decimal | None, number: int) -> dict[str, Any]:
    """A bill of one line: an hour of an instance."""
    line = {"item": "compute", "usage_type": f"EU-Train:{TYPES[number % len(TYPES)]}"}
    amounts = {"quantity": Decimal(1), "unit": "instance-hours", "rate_usd": total_usd}
    of_price = dict.fromkeys(("price_as_of", "price_source", "price_kind", "note"))
    return {"total_usd": total_usd, "lines": [{**line, **amounts, **of_price, "usd": total_usd}]}


def _finding(chance: random.Random, rule: str) -> dict[str, Any]:
    bucket = _BUCKETS.get(rule, "avoidable")
    usd = Decimal(chance.randrange(0, 5_000_000)).scaleb(-6)
    severity = chance.choice(("high", "medium", "low"))
    return finding(rule, bucket=bucket, saving_usd=usd, severity=severity)


def _word(kind: str) -> str:
    return "hyper-parameter-tuning-job" if kind == "tuning" else f"{kind}-job"
