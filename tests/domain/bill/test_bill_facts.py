"""The facts of a bill besides its lines."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.prices import sources
from sageaudit.domain.audit.document import document
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.bill_facts import (
    AMORTISED_NOTE,
    NOT_INCLUDED_NOTE,
    SAVINGS_PLAN_NOTE,
    Attempts,
    BillFacts,
    attempts,
    facts,
)
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.policy.discounts import Discounts
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.known_prices import OwnRate, RateBasis, group_own_rates
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import MissingMetrics
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit.judge import audit_job
from tests.fakes.jobs import market, not_none, phases, ran
from tests.fakes.packaged_prices import packaged_market

DATA = Path(__file__).parents[2] / "recorded" / "data" / "jobs"
FSX_SPOT = DATA / "training-073-m5-4xlarge-spot-fsx-completed.json"


def describe(path: Path = FSX_SPOT, **changes: Any) -> dict[str, Any]:
    """Returns a recorded Describe* answer with some keys changed."""
    answer: dict[str, Any] = json.loads(path.read_text())["describe"]
    return answer | changes


def facts_of(answer: dict[str, Any], *, savings_plan: bool = False) -> BillFacts:
    """Returns the facts of one answer at packaged prices."""
    job, market = parse(answer, {}), packaged_market()
    return facts(job, bill(job, market), market, savings_plan=savings_plan)


@pytest.mark.parametrize(
    ("billable_s", "usd"),
    # 22,343 and all 37,026 unbilled seconds of ml.m5.4xlarge at $0.922 an hour; an upper bound
    [(14683, "5.72"), (0, "9.48"), (None, None)],
)
def test_a_spot_run_shows_what_it_saved(billable_s: int | None, usd: str | None) -> None:
    """Without billable seconds the saving is unknown."""
    saved = facts_of(describe(BillableTimeInSeconds=billable_s)).spot_saved_usd
    assert (None if saved is None else round(saved, 2)) == (None if usd is None else Decimal(usd))


def test_a_spot_run_that_restarted_shows_both_figures_and_no_saving() -> None:
    """An hour, an interruption and an hour are billed as 90 minutes. On demand it takes 60."""
    parts = (("Training", 3600), ("Interrupted", -600), ("Training", 3600))
    run = ran(7800, purchase=Purchase.SPOT, billable_s=Decimal(5400), phases=phases(*parts))
    both = (
        "interrupted without checkpoints: spot cost $0.35, and one uninterrupted run on demand "
        "would have cost about $0.23"
    )
    noted, with_checkpoints = (
        facts(item, bill(item, market()), market(), savings_plan=False)
        for item in (run, replace(run, checkpointed=True))
    )
    assert (noted.spot_saved_usd, noted.notes[0]) == (None, both)
    assert with_checkpoints.spot_saved_usd is not None
    assert both not in with_checkpoints.notes


@pytest.mark.parametrize(
    ("parts", "purchase", "reason"),
    [
        # one attempt: billable seconds are training seconds, or on spot fewer
        pytest.param(
            (("Training", 3600),),
            Purchase.ON_DEMAND,
            "AWS's figures contradict each other",
            id="one attempt on demand",
        ),
        pytest.param(
            (("Training", 3600),),
            Purchase.SPOT,
            "AWS's figures contradict each other",
            id="one attempt on spot",
        ),
        # several: no document says what training seconds are then
        pytest.param(
            (("Training", 3600), ("Interrupted", -600), ("Training", 3600)),
            Purchase.SPOT,
            "AWS does not say whether training seconds count every attempt",
            id="several attempts on spot",
        ),
        pytest.param(
            (("Training", 3600), ("Restarting", -600), ("Training", 3600)),
            Purchase.ON_DEMAND,
            "AWS does not say whether training seconds count every attempt",
            id="a restart on demand",
        ),
        pytest.param(
            (),
            Purchase.SPOT,
            "AWS does not say whether training seconds count every attempt",
            id="no phases",
        ),
    ],
)
def test_more_billable_than_training_seconds_contradict_each_other_in_one_attempt_only(
    parts: tuple[tuple[str, int], ...], purchase: Purchase, reason: str
) -> None:
    """AWS documents both figures for a run without an interruption only."""
    run = ran(3600, purchase=purchase, billable_s=Decimal(5400), phases=phases(*parts))
    notes = facts(run, bill(run, market()), market(), savings_plan=False).notes
    assert f"billable seconds exceed training seconds: {reason}" in notes


def test_what_spot_saved_counts_no_waiting_and_no_repeated_download() -> None:
    """An hour of download and three of training would be billed on demand, and 1 h is billed:
    $0.69.
    """
    download, first, wait, again, rest = phases(
        ("Downloading", 3600),
        ("Training", 7200),
        ("Interrupted", -1800),
        ("Downloading", 3600),
        ("Training", 3600),
    )
    again = replace(again, billed=False, is_repeated=True)
    run = ran(
        20_000,
        purchase=Purchase.SPOT,
        billable_s=Decimal(3600),
        checkpointed=True,
        phases=(download, first, wait, again, rest),
    )
    saved = facts(run, bill(run, market()), market(), savings_plan=False).spot_saved_usd
    assert saved == Decimal("0.69")


@pytest.mark.parametrize(
    ("first_attempt_s", "repeated"),
    [
        pytest.param(0, None, id="an attempt without training repeats nothing"),
        pytest.param(
            1,
            Attempts(Decimal(10), Decimal(1), Decimal(0), Decimal("0.1")),
            id="one second is repeated",
        ),
    ],
)
def test_training_before_the_last_interruption_is_repeated_work(
    first_attempt_s: int, repeated: Attempts | None
) -> None:
    """9 s were billed: the last attempt takes these, so no repeated second is surely billed."""
    parts = (("Training", first_attempt_s), ("Interrupted", -60), ("Training", 9))
    run = ran(100, purchase=Purchase.SPOT, billable_s=Decimal(9), phases=phases(*parts))
    assert attempts(run) == repeated


RULES = [
    {"RuleConfigurationName": "mine", "InstanceType": "ml.r5.4xlarge", "VolumeSizeInGB": 500},
    {"RuleConfigurationName": "LossNotDecreasing", "VolumeSizeInGB": 0},
]
IRELAND = "763104351884.dkr{}/pytorch-training:2.1"


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        pytest.param({}, None, id="a job like any other"),
        # transfer of an image is billed and in no figure; ECR has two forms of host names
        *(
            (
                {"AlgorithmSpecification": {"TrainingImage": IRELAND.format(host)}},
                "the image is pulled from eu-west-1: its transfer is billed, but not included here",
            )
            for host in (".ecr.eu-west-1.amazonaws.com", "-ecr.eu-west-1.on.aws")
        ),
        # built-in rules have no instance type; a custom rule runs as its own job
        pytest.param(
            {"DebugRuleConfigurations": RULES},
            "custom Debugger rule mine runs as a processing job of its own, billed there",
            id=(
                "a custom Debugger rule runs as its own job, and a built-in one has no "
                "instance type"
            ),
        ),
    ],
)
def test_what_the_bill_does_not_include_is_named_once(
    changes: dict[str, Any], note: str | None
) -> None:
    """S3, NAT, FSx and the like; an image of another region; custom rules."""
    notes = facts_of(describe(**changes)).notes
    assert notes == (*([note] if note else ()), NOT_INCLUDED_NOTE)


def test_a_training_plan_costs_nothing_more_and_its_value_is_separate() -> None:
    """14,683 s of ml.m5.4xlarge would be $3.76 on demand, but the plan is prepaid."""
    plan = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/reserved"
    instances = {"InstanceType": "ml.m5.4xlarge", "InstanceCount": 1, "TrainingPlanArn": plan}
    answer = describe(EnableManagedSpotTraining=False, ResourceConfig=instances)
    assert bill(parse(answer, {}), packaged_market()).total_usd == 0
    assert round(not_none(facts_of(answer).prepaid_value_usd), 2) == Decimal("3.76")


def audited(path: Path, policy: Policy) -> dict[str, Any]:
    """Returns the document of a recorded job without metrics, at packaged prices."""
    job, market = parse(describe(path), {}), packaged_market()
    usage = measure(job, (), market.types, missing_reason=MissingMetrics("metric_missing", "none"))
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return dict(document(audit_job(job, usage, market, policy, catalogue.ruleset(), now=now)))


def test_under_a_savings_plan_figures_are_list_value_and_spot_has_no_dollars() -> None:
    """Spot would take usage from a commitment that is paid anyway."""
    path = DATA / "profiled-046-p3-2xlarge.json"
    policy = Policy(thresholds={"spot-not-used": {"min_spend_usd": 0.0}})
    plain = audited(path, policy)
    plan = audited(path, replace(policy, discounts=Discounts(savings_plan=True)))
    assert plain["bill"]["total_usd"] == plan["bill"]["total_usd"]
    assert SAVINGS_PLAN_NOTE in plan["bill"]["notes"]
    assert SAVINGS_PLAN_NOTE not in plain["bill"]["notes"]
    assert plain["possible_usd"] > plan["possible_usd"] == 0
    [spot] = [result for result in plan["findings"] if result["rule"] == "spot-not-used"]
    assert (spot["saving_usd"], spot["bucket"]) == (None, "none")
    assert "Savings Plan" in spot["caution"]
    region = not_none(parse(describe(path), {}).region)
    rate = OwnRate(
        region,
        Component.TRAINING,
        "ml.p3.2xlarge",
        Decimal(2),
        date(2020, 1, 1),
        date(2030, 1, 1),
        Decimal(10),
        "cur.csv",
    )
    learnt = group_own_rates(RateBasis.AMORTISED, None, [rate])
    amortised = audited(path, Policy(discounts=Discounts(savings_plan=True, own_rates=learnt)))
    assert AMORTISED_NOTE in amortised["bill"]["notes"]
    assert SAVINGS_PLAN_NOTE not in amortised["bill"]["notes"]


def test_own_prices_mark_the_bill_and_its_lines() -> None:
    """Every figure says whether its price is a list price or an own price."""
    half = Policy(discounts=Discounts(percent={"Training": Decimal(50)}))
    own = audited(FSX_SPOT, half)["bill"]
    listed = not_none(bill(parse(describe(), {}), packaged_market()).total_usd)
    assert own["price_kind"] == "own"
    assert {line["price_kind"] for line in own["lines"]} == {"own"}
    assert own["total_usd"] == (listed / 2).quantize(Decimal("0.000001"))


@pytest.mark.parametrize(
    ("image", "free"),
    [
        ("503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest", True),
        ("111122223333.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:1", False),
        ("503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules-ours:1", False),
        ("503895931360.dkr.ecr.us-east-1.amazonaws.com/my/sagemaker-debugger-rules:1", False),
    ],
)
def test_only_awss_own_rule_image_is_free(image: str, free: bool) -> None:
    """An image with a similar name is not free: 2 x ml.p4d.24xlarge for 10 h cost $505."""
    cluster = {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30}
    answer = {
        "ProcessingJobName": "rule",
        "ProcessingJobArn": "arn:aws:sagemaker:us-east-1:111122223333:processing-job/rule",
        "ProcessingJobStatus": "Completed",
        "AppSpecification": {"ImageUri": image},
        "ProcessingResources": {"ClusterConfig": cluster},
        "ProcessingStartTime": "2026-06-01T00:00:00Z",
        "ProcessingEndTime": "2026-06-01T10:00:00Z",
    }
    total = not_none(bill(parse(answer, {}), packaged_market()).total_usd)
    assert round(total, 2) == (0 if free else Decimal("505.03"))


def test_a_job_before_any_known_price_has_a_note() -> None:
    """The earliest known price is of a later day, so the bill is uncertain."""
    answer = describe(
        ResourceConfig={"InstanceType": "ml.g5.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30}
    )
    job = parse(answer, {})
    market = sources.offline_markets().market(job, datetime(2026, 11, 1, tzinfo=UTC))
    notes = facts(job, bill(job, market), market, savings_plan=False).notes
    assert any("earliest known price is of 2026-05-20" in note for note in notes)
