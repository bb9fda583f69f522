"""Random audits of several families, owners, accounts and regions, also roll-ups."""

import random
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

from sageaudit.domain.audit.record import AuditEntry
from sageaudit.domain.job.job import Purchase
from sageaudit.ports import History
from sageaudit.structs import replace
from tests.fakes import documents
from tests.fakes.entries import NOON, document, entry_of, finding
from tests.fakes.families import run_summary

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ACCOUNTS, REGIONS = ("111122223333", "444455556666"), ("us-east-1", "eu-west-1")
FAMILIES, OWNERS = ("resnet", "bert", "tabular"), ("ana", "bo", None)
TEAMS = ("growth", "search", None)
"""Values of the cost tags `team` and `project`."""
RULES = ("gpu-idle", "failed-spend", "spot-not-used", "old-generation")
_FACTS = (
    run_summary(Purchase.SPOT, instance_type="ml.g5.xlarge", instance_count=2),
    run_summary(Purchase.ON_DEMAND, instance_type="ml.m5.xlarge"),
    None,
)
TYPES = ("ml.g5.xlarge", "ml.m5.large")


def audits(count: int, *, seed: int = 1, days: int = 40) -> Iterator[AuditEntry]:
    """Yields audits of jobs that ended in the last days; every seventh is a tuning roll-up."""
    chance = random.Random(seed)
    for number in range(count):
        yield _audit(chance, number, days)


def fill(history: History, count: int, *, seed: int = 1, days: int = 40) -> None:
    """Records such audits in a history."""
    for entry in audits(count, seed=seed, days=days):
        history.record(entry)


def cached_reads(history: History) -> History:
    """Returns the history with cached reads."""

    def once(ask: Callable[..., Iterable[Any]]) -> Callable[..., list[Any]]:
        return cache(lambda *words, **more: [*ask(*words, **more)])

    cached: Any = SimpleNamespace(
        runs=once(history.runs),
        sum_parts=history.sum_parts,
        daily_sums=once(history.daily_sums),
        summary=cache(history.summary),
        take_unreadable=history.take_unreadable,
        unreadable_items=history.unreadable_items,
    )
    return cast("History", cached)


def _audit(chance: random.Random, number: int, days: int) -> AuditEntry:
    account, region = chance.choice(ACCOUNTS), chance.choice(REGIONS)
    rollup = number % 7 == 6
    kind = "tuning" if rollup else chance.choice(("training", "training", "processing"))
    family, name = f"{kind}/{chance.choice(FAMILIES)}", f"job-{number:05d}"
    # some jobs end at the same time
    ended_at = NOW - timedelta(minutes=10 * chance.randrange(days * 144))
    findings = [_finding(chance, rule) for rule in RULES if chance.random() < 0.4]
    judged = chance.choice(("yes", "yes", "partly", "no"))
    job = {
        "name": name,
        "arn": f"arn:aws:sagemaker:{region}:{account}:{_arn_word(kind)}/{name}",
        "kind": kind,
        "status": chance.choice(("Completed", "Completed", "Failed")),
        "account": account,
        "region": region,
        "family": family,
        "owner": chance.choice(OWNERS),
        "tags": {"team": TEAMS[number % 3], "project": TEAMS[number % 2]},
        "created_at": ended_at - timedelta(hours=2),
        "ended_at": ended_at,
    }
    saved = sum((finding["saving_usd"] for finding in findings), Decimal(0))
    total = saved + Decimal(chance.randrange(1, 9_000_000)).scaleb(-6)
    changes: dict[str, Any] = {
        "bill": _bill(None if chance.random() < 0.05 else total, number),
        "judged": judged,
        "rollup": rollup,
        "rollup_rules": [finding["rule"] for finding in findings][:1] if rollup else [],
        **documents.sums(findings, total),
    }
    if judged == "no" and not changes["avoidable_usd"]:
        changes["avoidable_usd"] = None
    audit = document(name, job=job, findings=findings, **changes)
    return replace(entry_of(audit, _FACTS[number % 3]), last_modified_at=NOON)


def _bill(total_usd: Decimal | None, number: int) -> dict[str, Any]:
    """Returns a bill of one line: one hour of an instance."""
    hour = documents.line(
        usage_type=f"EU-Train:{TYPES[number % len(TYPES)]}",
        quantity=Decimal(1),
        rate_usd=total_usd,
        usd=total_usd,
    )
    return {"total_usd": total_usd, "lines": [hour]}


def _finding(chance: random.Random, rule: str) -> Any:
    usd = Decimal(chance.randrange(0, 5_000_000)).scaleb(-6)
    return finding(rule, saving_usd=usd, severity=chance.choice(("high", "medium", "low")))


def _arn_word(kind: str) -> str:
    return "hyper-parameter-tuning-job" if kind == "tuning" else f"{kind}-job"
