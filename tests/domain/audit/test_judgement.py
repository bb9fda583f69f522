from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.domain.audit.audit import Audit, Judged
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.bill.bill import UPPER_BOUND
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.job.course import as_of
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.parts import WarmPool
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, MissingMetrics
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit.judge import audit_job
from tests.fakes.any_input import likely_jobs, odd_jobs, series
from tests.fakes.bad_input import measured
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, TYPES, flat, job, market, phases, ran, usage

ANY = settings(max_examples=80, deadline=None, derandomize=True, database=None)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
RULES = catalogue.ruleset()
WASTE = frozenset(rule.info.name for rule in RULES.rules if rule.finds_waste)


def busy(job: Job, minutes: int, hosts: int = 1) -> Measurements:
    """Returns the use of hosts whose GPUs are always busy."""
    return flat(job, minutes, hosts, cpu=90, gpu=95, memory=60, gpu_memory=60)


def make_audit(
    job: Job, measurements: Measurements | None = None, policy: Policy | None = None
) -> Audit:
    """Returns an audit, without metrics unless some are passed."""
    measurements = usage(job) if measurements is None else measurements
    return audit_job(job, measurements, market(), policy or Policy(), RULES, now=NOW)


def audited_document(
    job: Job, measurements: Measurements | None = None, **options: Any
) -> AuditDocument:
    """Returns the document of the same audit."""
    return document(make_audit(job, measurements, **options))


def test_a_completely_measured_run_is_judged() -> None:
    """Every rule could judge, so a sum of 0 means that nothing was found."""
    run = ran(7200, "ml.g4dn.xlarge")
    result = audited_document(run, busy(run, 120))
    assert (result["judged"], result["not_judged"], result["avoidable_usd"]) == ("yes", [], 0)


def test_without_metrics_the_avoidable_dollars_are_not_known() -> None:
    """The bill is known, but the use of the machines is not. So the sum is unknown, not 0."""
    result = audited_document(ran(7200, "ml.g5.2xlarge"))
    assert (result["judged"], result["avoidable_usd"]) == ("no", None)
    assert result["not_judged"] == ["The use of its machines was not judged: no points."]
    assert result["bill"]["total_usd"] == Decimal("3.03")
    assert result["lost_usd"] == 0


def test_a_run_with_an_unmeasured_host_is_judged_in_part() -> None:
    """The other hosts are known, but this one may be the busiest, so no sum is known."""
    run = ran(7200, "ml.g4dn.xlarge", 8)
    result = audited_document(run, busy(run, 120, 7))
    assert (result["judged"], result["avoidable_usd"]) == ("partly", None)
    assert result["not_judged"] == ["1 of 8 hosts has no metrics: what it did was not judged."]


def test_a_finding_of_the_phases_judges_the_run_in_part() -> None:
    """An unused warm pool was paid for. How the machines were used is unknown."""
    pool = WarmPool("Terminated", keep_alive_s=3600, retained_s=Decimal(3600))
    result = audited_document(ran(7200, "ml.g5.2xlarge", warm_pool=pool))
    assert result["avoidable_usd"] == Decimal("1.515")
    assert (result["judged"], len(result["not_judged"])) == ("partly", 1)


NO_TIMES: dict[str, Any] = dict.fromkeys(("started_at", "ended_at", "training_s", "billable_s"))


@pytest.mark.parametrize(
    "job",
    [
        ran(7200, status="Failed", secondary_status="Failed", has_artifact=False),
        replace(job(), status="Failed", phases=(), **NO_TIMES),
        ran(7200, free="built-in Debugger rule"),
    ],
    ids=["lost at its whole cost", "never started", "free"],
)
def test_without_remaining_dollars_there_is_nothing_to_judge(job: Job) -> None:
    """The whole bill is lost already, or there is none."""
    result = audited_document(job)
    assert (result["judged"], result["not_judged"]) == ("yes", [])
    assert result["avoidable_usd"] == 0


def test_a_short_run_is_not_judged() -> None:
    """Ten minutes are too few for every rule about the use of machines."""
    run = ran(600, "ml.g4dn.xlarge")
    result = audited_document(run, flat(run, 10, cpu=1, gpu=0, memory=1, gpu_memory=0))
    assert (result["judged"], result["avoidable_usd"]) == ("no", None)
    [reason] = result["not_judged"]
    assert reason == (
        "Its own code ran for only 10 min: at least 15 min are needed to judge its use. "
        "Shorter runs are judged together with the last runs of their family on the same "
        "instances, if these have that much in total."
    )


def test_serverless_and_switched_off_rules_have_their_own_sentences() -> None:
    """The use cannot be seen, or the policy switches off the rules about it."""
    serverless = replace(ran(7200), purchase=Purchase.SERVERLESS, groups=())
    assert audited_document(serverless)["not_judged"] == [
        "It is serverless: CloudWatch has no metrics of the machines that it ran on."
    ]
    run = ran(7200, "ml.g4dn.xlarge")
    blind = audited_document(run, busy(run, 120), policy=Policy(disabled_rules=WASTE))
    assert (blind["judged"], blind["avoidable_usd"]) == ("no", None)
    assert blind["not_judged"] == [
        "The policy switches off every rule that judges the use of the machines."
    ]


def test_prepaid_capacity_costs_nothing_more_but_is_judged() -> None:
    """A prepaid bill of 0 does not mean that the job never ran."""
    plan = ran(7200, "ml.g4dn.xlarge", purchase=Purchase.TRAINING_PLAN)
    assert audited_document(plan)["judged"] == "no"
    assert audited_document(plan, busy(plan, 120))["judged"] == "yes"


def test_a_rule_that_fails_does_not_judge_the_run() -> None:
    """A defect of sageaudit leaves a part unjudged, and the sentence says where to look."""
    run = ran(7200, "ml.g4dn.xlarge")

    def broken(_: object) -> None:
        raise ZeroDivisionError

    rules = tuple(
        replace(rule, check=broken) if rule.info.name == "gpu-idle" else rule  # type: ignore[arg-type]
        for rule in RULES.rules
    )
    ruleset = replace(RULES, rules=rules)
    audit = audit_job(run, busy(run, 120), market(), Policy(), ruleset, now=NOW)
    assert audit.judgement.judged is Judged.PARTLY
    assert "defect of sageaudit" in audit.judgement.not_judged[0]


def test_a_finding_has_the_earlier_run_that_its_rule_names() -> None:
    """cost-regression names the run that reported the same cost, so that it is posted once."""
    reported = {"rules_with_findings": frozenset({"cost-regression"})}
    costs = [Decimal("0.46"), *[Decimal("0.23")] * 10]
    earlier = tuple(
        earlier_run(day, total_usd=usd, **(reported if day == 1 else {}))
        for day, usd in enumerate(costs, 1)
    )
    run = ran(7200, volume_gb=None)
    audit = audit_job(run, usage(run), market(), Policy(), RULES, now=NOW, earlier_runs=earlier)
    [result] = [
        finding for finding in document(audit)["findings"] if finding["rule"] == "cost-regression"
    ]
    assert result["reported_for_run"] == "train-1"


def test_a_sum_of_0_is_unknown_if_a_finding_has_no_figure() -> None:
    """A spot bill without billable seconds is an upper bound, so the saving of a fix is unknown."""
    spot = ran(7200, "ml.g4dn.2xlarge", purchase=Purchase.SPOT, billable_s=None)
    result = audited_document(spot, flat(spot, 120, cpu=10, gpu=5, memory=10, gpu_memory=10))
    assert "gpu-underused" in {finding["rule"] for finding in result["findings"]}
    assert (result["judged"], result["avoidable_usd"]) == ("partly", None)
    [sentence] = result["not_judged"]
    assert "gpu-underused" in sentence
    assert sentence.endswith(" not known: the bill is an upper bound.")
    assert (result["bill"]["complete"], result["bill"]["missing"]) == (False, [UPPER_BOUND])
    failed = replace(spot, status="Failed", secondary_status="Failed", has_artifact=False)
    assert audited_document(failed)["lost_usd"] is None


def test_a_trial_without_a_figure_makes_the_possible_dollars_unknown() -> None:
    """Spot before a script writes checkpoints: its saving is unknown, not 0."""
    run = ran(36_000, "ml.g4dn.xlarge")
    result = audited_document(run, busy(run, 600))
    [spot] = [item for item in result["findings"] if item["rule"] == "spot-not-used"]
    assert (spot["bucket"], spot["saving_usd"]) == ("possible", None)
    assert (result["judged"], result["avoidable_usd"], result["possible_usd"]) == ("yes", 0, None)


RUNNING = job(
    "ml.g4dn.xlarge",
    status="InProgress",
    secondary_status="Training",
    ended_at=None,
    training_s=None,
    billable_s=None,
    has_artifact=None,
    phases=(
        *phases(("Starting", -120), ("Downloading", 600)),
        replace(phases(("Training", 1))[0], started_at=START + timedelta(minutes=10), seconds=None),
    ),
)


def test_a_job_that_still_runs_shows_its_cost_until_now() -> None:
    """An hour at $0.736: ten minutes Downloading, the rest Training. Nothing is judged yet."""
    run = as_of(RUNNING, START + timedelta(hours=1))
    result = audited_document(run, busy(run, 50))
    assert result["bill"]["total_usd"] == Decimal("0.736")
    assert [(p["name"], p["seconds"]) for p in result["phases"]][1:] == [
        ("Downloading", 600),
        ("Training", 3000),
    ]
    assert sum(part["usd"] or 0 for part in result["phases"]) == Decimal("0.736")
    assert result["bill"]["complete"] is False
    assert result["bill"]["missing"] == [
        "the job is still running, and its cost is counted up to 2026-05-20 11:00 UTC"
    ]
    assert result["judged"] == "no"
    assert result["not_judged"] == [
        "How it used its machines can be judged only after it ends (status InProgress)."
    ]
    assert (result["avoidable_usd"], result["lost_usd"], result["possible_usd"]) == (None,) * 3
    assert {unknown["code"] for unknown in result["unknown"]} == {"job_not_finished"}
    assert result["audit"]["settled"] is False


def test_a_running_spot_job_costs_at_most_its_billed_phases() -> None:
    """Waiting for capacity again is not billed. How much Spot bills of the rest is unknown."""
    waited = phases(("Interrupted", 1800), at=START + timedelta(minutes=10))
    restarted = replace(RUNNING.phases[-1], started_at=START + timedelta(minutes=40))
    spot = replace(
        RUNNING,
        purchase=Purchase.SPOT,
        phases=(*RUNNING.phases[:2], replace(waited[0], billed=False), restarted),
    )
    result = audited_document(as_of(spot, START + timedelta(hours=1)))
    assert (result["bill"]["basis"], result["bill"]["total_usd"]) == (
        "upper_bound",
        Decimal("0.368"),
    )


def test_a_job_that_waits_for_its_instances_has_cost_nothing_so_far() -> None:
    """Pending is not billed: the cost is 0 so far, and not complete."""
    waiting = replace(RUNNING, started_at=None, phases=(replace(RUNNING.phases[0], seconds=None),))
    result = audited_document(as_of(waiting, START))
    assert (result["bill"]["total_usd"], result["bill"]["complete"]) == (0, False)
    assert (result["judged"], result["avoidable_usd"]) == ("no", None)


def test_a_finished_job_has_no_time_of_observation() -> None:
    """A finished job stays unchanged, whatever the time is."""
    assert as_of(job(), START + timedelta(days=9)) == job()


@ANY
@given(st.data())
def test_an_unjudged_run_has_no_sum_of_0(data: st.DataObject) -> None:
    """For any job and metrics, "no" means a sum of null, and "yes" has no sentences."""
    job = data.draw(likely_jobs() | odd_jobs())
    audit = make_audit(job, measured(job, data.draw(series(job))))
    judged, total = audit.judgement, audit.savings.avoidable_usd
    assert (judged.judged is Judged.YES) == (judged.not_judged == ())
    assert len(judged.not_judged) <= 5
    assert len(set(judged.not_judged)) == len(judged.not_judged)
    open_trial = any(
        finding.is_standing
        and finding.detection.bucket is Bucket.POSSIBLE
        and finding.saving_usd is None
        for finding in audit.savings.findings
    )
    if judged.judged is Judged.NO or open_trial:
        assert audit.savings.possible_usd != 0
    if judged.judged is Judged.NO:
        assert total is None
    elif judged.judged is Judged.YES and audit.bill.total_usd is not None:
        assert total is not None
    assert all(text.endswith(".") and text[0].isalnum() for text in judged.not_judged)


@ANY
@given(st.data())
def test_without_metrics_only_dollars_of_the_phases_remain(data: st.DataObject) -> None:
    """Without metrics there is no sum that rules without metrics did not find, and never "yes"."""
    job = data.draw(likely_jobs())
    full = make_audit(job, measured(job, data.draw(series(job))))
    none = measure(job, (), TYPES, missing_reason=MissingMetrics("metric_missing", "no points"))
    bare = make_audit(job, none)
    counted = [
        finding
        for finding in bare.savings.findings
        if finding.is_standing
        and finding.saving_usd
        and finding.detection.bucket.value == "avoidable"
    ]
    if bare.judgement.judged is not Judged.YES:
        assert (bare.savings.avoidable_usd is not None) == bool(counted)
        assert not {finding.rule.name for finding in counted} & WASTE
    elif bare.bill.total_usd:
        assert bare.savings.lost_usd == bare.bill.total_usd == full.savings.lost_usd


def test_the_instances_of_a_job_decide_whose_metrics_are_missing() -> None:
    """A type that the catalogue lacks is named, as its use cannot be computed."""
    unknown_type = replace(ran(7200), groups=(InstanceGroup("ml.new.xlarge", 1),))
    [first, *_] = audited_document(unknown_type)["not_judged"]
    assert first.startswith("The use of the CPUs, the GPUs and GPU memory was not judged: ")
    assert "ml.new.xlarge is not in the catalogue" in first
