from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.request.forecast import DurationBasis, MaxCost, MedianRange, RunLimit
from sageaudit.structs import replace
from tests.fakes.families import earlier_run
from tests.fakes.planned import LATER, checked_request, request_finding

RUN = "StoppingCondition.MaxRuntimeInSeconds"
SIZE = "ResourceConfig.VolumeSizeInGB"


def max_cost_of(changes: dict[str, Any] | None = None, **more: Any) -> MaxCost:
    """Returns the maximum cost of a request."""
    result = checked_request(changes, **more).cost
    assert result is not None
    return result


def test_the_maximum_is_the_limit_times_the_rate_and_the_volumes() -> None:
    """Two instances for two hours at $0.23, and 100 GB each at $0.14 for 2 of 744 hours."""
    two = {"ResourceConfig.InstanceCount": 2, RUN: 7200, SIZE: 100}
    volumes = Decimal("0.14") * 200 * 2 / 744
    assert max_cost_of(two).usd == pytest.approx(Decimal("0.92") + volumes)


def test_without_a_limit_aws_takes_a_day() -> None:
    """For training and processing jobs."""
    assert max_cost_of({RUN: None}).limit == RunLimit(Decimal(86_400), is_default=True)
    assert max_cost_of({RUN: 60}).limit == RunLimit(Decimal(60))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({RUN: LATER}, "known after apply"),
        ({"ResourceConfig.InstanceType": LATER}, "InstanceType is not known yet"),
        ({"ResourceConfig.InstanceType": "ml.g9.xlarge"}, "no Training price known"),
        ({RUN: 3_000_000}, "AWS refuses it"),
        ({"ServerlessJobConfig": {"BaseModelArn": "arn:aws:x"}}, "priced by token"),
    ],
)
def test_what_cannot_be_priced_is_unknown_with_its_reason(
    changes: dict[str, Any], reason: str
) -> None:
    """It is never 0."""
    result = max_cost_of(changes)
    assert result.usd is None
    assert reason in (result.unknown_because or "")


def test_a_transform_job_has_no_limit() -> None:
    """Its rate is known."""
    result = max_cost_of(kind=JobKind.TRANSFORM)
    assert (result.usd, result.hourly_usd) == (None, Decimal("0.23"))


def test_the_most_expensive_preferred_type_counts() -> None:
    """SageMaker may use any of them."""
    names = ("ml.m5.large", "ml.m5.4xlarge", "ml.m5.xlarge")
    preferred = [{"InstanceType": name, "InstanceCount": 1} for name in names]
    changes = {
        "ResourceConfig": {"InstancePreferences": preferred, "VolumeSizeInGB": 0},
        RUN: 3600,
    }
    assert max_cost_of(changes).usd == Decimal("0.92")


def test_trials_are_counted() -> None:
    """Eight at their limit; a grid by its combinations; or as many as fit into the search's
    time, with their volumes.
    """
    trial = MaxCost(RunLimit(Decimal(3600)), Decimal(2), hourly_usd=Decimal(2))
    config = "HyperParameterTuningJobConfig"
    tuning: dict[str, Any] = {
        "kind": JobKind.TUNING,
        "trials": [trial, replace(trial, usd=Decimal(3))],
    }
    assert max_cost_of(**tuning).usd == 24
    grid = {
        f"{config}.Strategy": "Grid",
        f"{config}.ResourceLimits.MaxNumberOfTrainingJobs": None,
        f"{config}.ParameterRanges": {
            "CategoricalParameterRanges": [
                {"Name": "a", "Values": ["1", "2"]},
                {"Name": "b", "Values": ["1", "2", "3"]},
            ]
        },
    }
    assert max_cost_of(grid, **tuning).usd == 18
    short = {f"{config}.ResourceLimits.MaxRuntimeInSeconds": 1800}
    assert max_cost_of(short, **tuning).usd == 3


def test_only_comparable_runs_are_compared() -> None:
    """Completed runs of the same type, count and purchase. Nothing is scaled."""
    runs = [
        *(earlier_run(n, total_usd=Decimal(n), elapsed_s=Decimal(100 * n)) for n in (1, 3, 8)),
        earlier_run(4, total_usd=Decimal(50), instance_count=2),
        earlier_run(5, total_usd=Decimal(60), purchase=Purchase.SPOT),
        earlier_run(6, total_usd=Decimal("0.1"), status="Failed"),
    ]
    result = checked_request(earlier=runs).forecast
    assert result
    assert (result.runs, result.comparable_runs, result.failed_runs) == (6, 3, 1)
    assert result.usd == MedianRange(Decimal(3), Decimal(1), Decimal(8))
    assert result.seconds
    assert result.seconds.median == 300


def test_a_family_without_comparable_runs_predicts_nothing() -> None:
    """A family without runs is known to be new."""
    other_run = checked_request(earlier=[earlier_run(1, instance_type="ml.m5.large")]).forecast
    assert other_run
    assert (other_run.runs, other_run.comparable_runs, other_run.usd) == (1, 0, None)
    first = checked_request(earlier=[]).forecast
    assert first
    assert first.runs == 0
    assert checked_request().forecast is None


def test_dollars_are_based_on_the_family_if_it_is_known() -> None:
    """Otherwise on the limit, or else on an hour."""
    assert checked_request(earlier=[earlier_run(1)]).basis is DurationBasis.HISTORY
    assert checked_request().basis is DurationBasis.LIMIT
    assert checked_request(kind=JobKind.TRANSFORM).basis is DurationBasis.HOUR


@pytest.mark.parametrize(
    ("instances", "limit_s", "severity"),
    [(10, None, Severity.LOW), (30, 432_000, Severity.MEDIUM), (40, 432_000, Severity.HIGH)],
)
def test_the_cost_of_a_hung_run_decides_the_severity_of_its_limit(
    instances: int, limit_s: int | None, severity: Severity
) -> None:
    """At $0.23 an hour, for one day or five: medium from $100, high from $1,000."""
    limit = {"ResourceConfig.InstanceCount": instances, RUN: limit_s}
    assert request_finding("limit-cost", limit).severity is severity


def test_the_policy_decides_about_severity_and_exemptions() -> None:
    """As after a run."""
    spot = {"EnableManagedSpotTraining": True}
    quiet = Policy(severities={"spot-wait": Severity.LOW})
    assert request_finding("spot-wait", spot).severity is Severity.HIGH
    assert request_finding("spot-wait", spot, policy=quiet).severity is Severity.LOW
    tagged = spot | {"Tags": [{"Key": "sageaudit:ignore", "Value": "spot-wait"}]}
    assert request_finding("spot-wait", tagged).exempt is not None
    off = Policy(disabled_rules=frozenset({"spot-wait"}))
    assert "spot-wait" not in {f.rule.name for f in checked_request(spot, policy=off).findings}
