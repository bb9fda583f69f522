"""One type for all runs of a family, by the shipped prices: each run is audited in turn."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby

import pytest

from sageaudit.adapters.prices import sources
from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit.judge import audit_job, run_summary
from tests.fakes.families import earlier_run, run_fields
from tests.fakes.jobs import by_point, even, ran

SMALL, LARGE = "ml.g4dn.xlarge", "ml.g5.xlarge"
TODAY = "ml.p3.2xlarge"
M5, C5 = "ml.m5.4xlarge", "ml.c5.2xlarge"


def audited(percent: float, instance_type: str, earlier: Sequence[AuditSummary]) -> Audit:
    """An hour whose GPU, or CPU without one, is so busy, with little of anything else."""
    run = ran(3600, instance_type, volume_gb=0)
    run = replace(run, hints=replace(run.hints, mixed_precision=True))
    assert run.ended_at is not None
    market = sources.offline_markets().market(run, run.ended_at)
    use = {"gpu": percent, "gpu_memory": 20.0, "cpu": 8.0, "memory": 8.0}
    if not market.types[instance_type].gpus:
        use = {"cpu": percent, "memory": 8.0}
    measurements: Measurements = by_point(run, 1, even(60, use), types=market.types)
    audited_at, ruleset = run.ended_at + timedelta(days=1), catalogue.ruleset()
    return audit_job(
        run, measurements, market, Policy(), ruleset, now=audited_at, earlier_runs=tuple(earlier)
    )


def recommended_types(*stretches: tuple[str, Sequence[float]]) -> Iterator[str]:
    """Yields the type that each run was recommended; of each stretch its type and GPU loads."""
    runs: list[AuditSummary] = []
    for instance_type, percent in (
        (instance_type, percent) for instance_type, loads in stretches for percent in loads
    ):
        audit = audited(percent, instance_type, runs)
        facts, usd = run_summary(audit), audit.bill.total_usd
        run = earlier_run(total_usd=usd, job=f"run-{len(runs)}", **run_fields(facts))
        runs.insert(0, run)
        yield facts.recommended_type or "nothing"


MIXED = [8.0, 30.0, 90.0] * 5


@pytest.mark.parametrize(
    ("stretches", "types"),
    [
        # alone each run has its own: the larger one holds all of them
        ([(TODAY, [8.0] * 4)], [SMALL]),
        ([(TODAY, [90.0] * 4)], [LARGE]),
        ([(TODAY, [90.0, *MIXED])], [LARGE]),
        # nobody knew before the first busy run
        ([(TODAY, MIXED)], [SMALL, LARGE]),
        # the load falls for good: after ten runs the smaller one
        ([(TODAY, [90.0, *[8.0] * 10])], [LARGE]),
        ([(TODAY, [90.0, *[8.0] * 14])], [LARGE, SMALL]),
        # followed: a smaller one would not hold its busy runs, before that and since
        ([(M5, [40.0, 8.0, 20.0])], [C5]),
        ([(M5, [40.0, 8.0, 20.0]), (C5, [16.0, 80.0] * 6)], [C5, "nothing"]),
        ([(M5, [40.0]), (C5, [16.0] * 14)], [C5, "nothing", "ml.c7i.large"]),
        # never told: it runs there for a reason that nobody knows
        ([(C5, [80.0, 16.0] * 2)], ["nothing", "ml.c7i.large"] * 2),
        # a run whose GPU does nothing is no measure of the others, nor they of it
        ([(TODAY, [90.0, 0.0, 90.0])], [LARGE, "ml.m5.large", LARGE]),
    ],
)
def test_a_family_gets_one_recommended_type(
    stretches: list[tuple[str, list[float]]], types: list[str]
) -> None:
    """In a row, as often as it was recommended."""
    assert [name for name, _ in groupby(recommended_types(*stretches))] == types


def test_the_reason_names_the_type_that_others_need() -> None:
    """The run itself would fit on less."""
    busy = earlier_run(**run_fields(run_summary(audited(90.0, TODAY, []))))
    findings = audited(8.0, TODAY, [busy]).savings.findings
    assert f"This run fits {SMALL}, but fewer of its family's last" in str(findings[0].detection)
