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
from sageaudit.domain.usage.measurements import Measurements, Missing
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


def busy(of: Job, minutes: int, hosts: int = 1) -> Measurements:
    """Hosts whose GPUs have no time to spare."""
    return flat(of, minutes, hosts, cpu=90, gpu=95, memory=60, gpu_memory=60)


def audited(of: Job, used: Measurements | None = None, policy: Policy | None = None) -> Audit:
    """An audit, without metrics unless some are given."""
    used = usage(of) if used is None else used
    return audit_job(of, used, market(), policy or Policy(), RULES, now=NOW)


def written(of: Job, used: Measurements | None = None, **options: Any) -> AuditDocument:
    """Its document."""
    return document(audited(of, used, **options))


def test_a_run_that_was_measured_whole_is_judged() -> None:
    """Every rule answered: a sum of 0 then means that nothing was found."""
    run = ran(7200, "ml.g4dn.xlarge")
    found = written(run, busy(run, 120))
    assert (found["judged"], found["not_judged"], found["avoidable_usd"]) == ("yes", [], 0)


def test_without_metrics_the_avoidable_dollars_are_not_known() -> None:
    """A bill of dollars and nobody who could look at the machines: unknown, not 0."""
    found = written(ran(7200, "ml.g5.2xlarge"))
    assert (found["judged"], found["avoidable_usd"]) == ("no", None)
    assert found["not_judged"] == ["The use of its machines was not judged: no points."]
    assert found["bill"]["total_usd"] == Decimal("3.03")
    assert found["lost_usd"] == 0


def test_a_host_without_metrics_leaves_the_run_judged_in_part() -> None:
    """What the others did is known; the one may be the busiest, so that no sum is."""
    run = ran(7200, "ml.g4dn.xlarge", 8)
    found = written(run, busy(run, 120, 7))
    assert (found["judged"], found["avoidable_usd"]) == ("partly", None)
    assert found["not_judged"] == ["1 of 8 hosts has no metrics: what it did was not judged."]


def test_a_finding_of_the_phases_stands_and_is_judged_in_part() -> None:
    """A warm pool that nobody used was paid; what the machines did is not known."""
    pool = WarmPool("Terminated", keep_alive_s=3600, retained_s=Decimal(3600))
    found = written(ran(7200, "ml.g5.2xlarge", warm_pool=pool))
    assert found["avoidable_usd"] == Decimal("1.515")
    assert (found["judged"], len(found["not_judged"])) == ("partly", 1)


NO_TIMES: dict[str, Any] = dict.fromkeys(("started_at", "ended_at", "training_s", "billable_s"))


@pytest.mark.parametrize(
    "of",
    [
        ran(7200, status="Failed", secondary_status="Failed", has_artifact=False),
        replace(job(), status="Failed", phases=(), **NO_TIMES),
        ran(7200, free="built-in Debugger rule"),
    ],
    ids=["lost at its whole cost", "never started", "free"],
)
def test_where_no_dollar_is_left_nothing_is_left_to_judge(of: Job) -> None:
    """Its whole bill is lost already, or there is none."""
    found = written(of)
    assert (found["judged"], found["not_judged"]) == ("yes", [])
    assert found["avoidable_usd"] == 0


def test_a_short_run_is_not_judged() -> None:
    """Ten minutes are too few for every rule that looks at the machines."""
    run = ran(600, "ml.g4dn.xlarge")
    found = written(run, flat(run, 10, cpu=1, gpu=0, memory=1, gpu_memory=0))
    assert (found["judged"], found["avoidable_usd"]) == ("no", None)
    [reason] = found["not_judged"]
    assert reason == (
        "Its own code ran for only 10 min: at least 15 min are needed to judge its use. "
        "Shorter runs are judged together with the last runs of their family on the same "
        "instances, if these have that much in total."
    )


def test_serverless_and_switched_off_rules_have_their_own_sentences() -> None:
    """Nobody can look, or somebody chose not to."""
    serverless = replace(ran(7200), purchase=Purchase.SERVERLESS, groups=())
    assert written(serverless)["not_judged"] == [
        "It is serverless: CloudWatch has no metrics of the machines that it ran on."
    ]
    run = ran(7200, "ml.g4dn.xlarge")
    blind = written(run, busy(run, 120), policy=Policy(disabled_rules=WASTE))
    assert (blind["judged"], blind["avoidable_usd"]) == ("no", None)
    assert blind["not_judged"] == [
        "The policy switches off every rule that judges the use of the machines."
    ]


def test_prepaid_capacity_costs_nothing_more_and_must_be_judged_all_the_same() -> None:
    """A bill of 0 that is prepaid is no job that never ran."""
    plan = ran(7200, "ml.g4dn.xlarge", purchase=Purchase.TRAINING_PLAN)
    assert written(plan)["judged"] == "no"
    assert written(plan, busy(plan, 120))["judged"] == "yes"


def test_a_rule_that_fails_is_not_taken_for_an_answer() -> None:
    """A defect of ours leaves a part unjudged, and says where to look."""
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


def test_a_finding_whose_rule_names_an_earlier_run_carries_it_in_the_audit() -> None:
    """cost-regression names the run that reported the same cost, so that it is posted once."""
    reported = {"rules_with_findings": frozenset({"cost-regression"})}
    costs = [Decimal("0.46"), *[Decimal("0.23")] * 10]
    earlier = tuple(
        earlier_run(day, total_usd=usd, **(reported if day == 1 else {}))
        for day, usd in enumerate(costs, 1)
    )
    run = ran(7200, volume_gb=None)
    audit = audit_job(run, usage(run), market(), Policy(), RULES, now=NOW, earlier_runs=earlier)
    [found] = [
        finding for finding in document(audit)["findings"] if finding["rule"] == "cost-regression"
    ]
    assert found["reported_for_run"] == "train-1"


def test_a_sum_of_0_beside_a_finding_without_a_figure_is_not_known() -> None:
    """A spot bill without billable seconds is a bound: what a fix saves of it is not known."""
    spot = ran(7200, "ml.g4dn.2xlarge", purchase=Purchase.SPOT, billable_s=None)
    found = written(spot, flat(spot, 120, cpu=10, gpu=5, memory=10, gpu_memory=10))
    assert "gpu-underused" in {finding["rule"] for finding in found["findings"]}
    assert (found["judged"], found["avoidable_usd"]) == ("partly", None)
    [sentence] = found["not_judged"]
    assert "gpu-underused" in sentence
    assert sentence.endswith(" not known: the bill is an upper bound.")
    assert (found["bill"]["complete"], found["bill"]["missing"]) == (False, [UPPER_BOUND])
    failed = replace(spot, status="Failed", secondary_status="Failed", has_artifact=False)
    assert written(failed)["lost_usd"] is None


def test_a_trial_without_a_figure_makes_what_is_possible_unknown() -> None:
    """Spot before a script writes checkpoints: what it saves is not known, and so no 0."""
    run = ran(36_000, "ml.g4dn.xlarge")
    found = written(run, busy(run, 600))
    [spot] = [one for one in found["findings"] if one["rule"] == "spot-not-used"]
    assert (spot["bucket"], spot["saving_usd"]) == ("possible", None)
    assert (found["judged"], found["avoidable_usd"], found["possible_usd"]) == ("yes", 0, None)


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
    """An hour at $0.736: ten minutes Downloading, the rest Training; nothing is judged yet."""
    run = as_of(RUNNING, START + timedelta(hours=1))
    found = written(run, busy(run, 50))
    assert found["bill"]["total_usd"] == Decimal("0.736")
    assert [(p["name"], p["seconds"]) for p in found["phases"]][1:] == [
        ("Downloading", 600),
        ("Training", 3000),
    ]
    assert sum(part["usd"] or 0 for part in found["phases"]) == Decimal("0.736")
    assert found["bill"]["complete"] is False
    assert found["bill"]["missing"] == [
        "the job still runs (status InProgress): its cost is counted until 2026-05-20 11:00 UTC"
    ]
    assert found["judged"] == "no"
    assert found["not_judged"] == [
        "It has not ended (status InProgress): its use can be judged only after its end."
    ]
    assert (found["avoidable_usd"], found["lost_usd"], found["possible_usd"]) == (None,) * 3
    assert {unknown["code"] for unknown in found["unknown"]} == {"job_not_finished"}
    assert found["audit"]["settled"] is False


def test_a_running_spot_job_costs_at_most_its_billed_phases() -> None:
    """Waiting for capacity again is not billed; what spot bills of the rest is not known."""
    waited = phases(("Interrupted", 1800), at=START + timedelta(minutes=10))
    again = replace(RUNNING.phases[-1], started_at=START + timedelta(minutes=40))
    spot = replace(
        RUNNING,
        purchase=Purchase.SPOT,
        phases=(*RUNNING.phases[:2], replace(waited[0], billed=False), again),
    )
    found = written(as_of(spot, START + timedelta(hours=1)))
    assert (found["bill"]["basis"], found["bill"]["total_usd"]) == ("upper_bound", Decimal("0.368"))


def test_a_job_that_waits_for_its_instances_has_cost_nothing_so_far() -> None:
    """Pending is not billed: 0 so far, and not complete."""
    waiting = replace(RUNNING, started_at=None, phases=(replace(RUNNING.phases[0], seconds=None),))
    found = written(as_of(waiting, START))
    assert (found["bill"]["total_usd"], found["bill"]["complete"]) == (0, False)
    assert (found["judged"], found["avoidable_usd"]) == ("no", None)


def test_a_finished_job_has_no_time_until_which_it_ran() -> None:
    """What was closed is not opened again, whatever the time."""
    assert as_of(job(), START + timedelta(days=9)) == job()


@ANY
@given(st.data())
def test_no_judgement_goes_with_a_sum_of_0(data: st.DataObject) -> None:
    """Whatever the job and its metrics: "no" means null, "yes" has nothing to add."""
    of = data.draw(likely_jobs() | odd_jobs())
    audit = audited(of, measured(of, data.draw(series(of))))
    judged, total = audit.judgement, audit.savings.avoidable_usd
    assert (judged.judged is Judged.YES) == (judged.not_judged == ())
    assert len(judged.not_judged) <= 5
    assert len(set(judged.not_judged)) == len(judged.not_judged)
    open_trial = any(
        one.is_standing and one.detection.bucket is Bucket.POSSIBLE and one.saving_usd is None
        for one in audit.savings.findings
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
    """No metrics never turn into a sum that a rule did not find without them, nor into "yes"."""
    of = data.draw(likely_jobs())
    full = audited(of, measured(of, data.draw(series(of))))
    none = measure(of, (), TYPES, missing_reason=Missing("metric_missing", "no points"))
    bare = audited(of, none)
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
    """A type that the catalogue lacks is named: its use is no share of anything."""
    odd = replace(ran(7200), groups=(InstanceGroup("ml.new.xlarge", 1),))
    [first, *_] = written(odd)["not_judged"]
    assert first.startswith("The use of the CPUs, the GPUs and GPU memory was not judged: ")
    assert "ml.new.xlarge is not in the catalogue" in first
