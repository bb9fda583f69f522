from decimal import Decimal
from functools import partial
from typing import Any

from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.change import CutPhase
from sageaudit.domain.bill.counterfactual import Severities, allocate_savings
from sageaudit.domain.bill.finding import Confidence, RuleInfo
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import ProcessingOutput
from sageaudit.structs import replace
from tests.fakes.jobs import batch_job, market
from tests.fakes.judging import answer, expect_detection, rule_named
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    Measured,
    cannot_judge,
    does_not_apply,
    finds,
    hosts,
    one_host,
)

RULE = "processing-upload-at-end"
AT_END = ProcessingOutput("result", "EndOfJob")


def processing(minutes: int = 60, hosts: int = 1, **changes: Any) -> Job:
    """A run whose output is uploaded at its end, on hosts with 8 vCPUs at $0.46 an hour."""
    plain: dict[str, Any] = {"uploads": (AT_END,), "volume_gb": None}
    return batch_job(JobKind.PROCESSING, 60 * minutes, "ml.m5.2xlarge", hosts, **plain | changes)


def ends_idle(idle_minutes: int, minutes: int = 60, count: int = 1) -> Measured:
    """This many hosts at work until their last minutes."""
    cores = [4.0] * (minutes - idle_minutes) + [0.01] * idle_minutes
    return hosts(*[{"cores": cores}] * count)


verdict = partial(answer, RULE)


def test_a_long_idle_end_with_end_of_job_outputs_is_found() -> None:
    # 18 of 60 minutes; Continuous for that output, not for the one that has it.
    result = verdict(
        processing(
            uploads=(
                AT_END,
                ProcessingOutput("log", "Continuous"),
                ProcessingOutput("features", None),
            )
        ),
        ends_idle(idle_minutes=18),
    )
    assert result == finds(
        "All hosts were idle for the last 18 min of 1 h: outputs with S3UploadMode EndOfJob are "
        "uploaded then.",
        builder="derived",
        fix=[
            (
                "ProcessingOutputConfig.Outputs[result].S3Output.S3UploadMode",
                "EndOfJob",
                "Continuous",
            )
        ],
    )


def test_nothing_is_counted_until_a_run_shows_it() -> None:
    # Between nothing and 18 of 60 minutes of $0.46, $0.138.
    assert verdict(processing(), ends_idle(idle_minutes=18)) == finds(
        usd="0.000000", alone="0.000000", span=("0.000000", "0.138000")
    )


def test_an_idle_end_of_5_minutes_is_not_long_and_of_6_minutes_it_is() -> None:
    assert verdict(processing(minutes=30), ends_idle(idle_minutes=5, minutes=30)) == CLEAR
    assert verdict(processing(minutes=30), ends_idle(idle_minutes=6, minutes=30)) == FOUND


def test_an_idle_end_of_12_of_120_minutes_a_tenth_is_long_and_of_11_it_is_not() -> None:
    assert verdict(processing(minutes=120), ends_idle(idle_minutes=12, minutes=120)) == FOUND
    assert verdict(processing(minutes=120), ends_idle(idle_minutes=11, minutes=120)) == CLEAR


def test_a_run_that_was_idle_throughout_has_no_end_to_blame() -> None:
    """There was no work before it."""
    assert verdict(processing(), ends_idle(idle_minutes=60)) == CLEAR


def test_minutes_without_data_are_not_idle() -> None:
    """Absent is not zero."""
    assert verdict(processing(), one_host(cores=[4.0] * 50 + [None] * 10)) == CLEAR


def test_other_jobs_are_not_judged() -> None:
    """The advised job among them."""
    result = verdict(
        processing(uploads=(ProcessingOutput("result", "Continuous"),)), ends_idle(idle_minutes=18)
    )
    assert result == does_not_apply("…no output is uploaded at the end…")
    result = verdict(processing(uploads=()), ends_idle(idle_minutes=18))
    assert result == does_not_apply("…no output is uploaded at the end…")
    result = verdict(processing(status="Failed"), ends_idle(idle_minutes=18))
    assert result == does_not_apply("…did not complete…")
    result = verdict(processing(free="built-in Debugger rule"), ends_idle(idle_minutes=18))
    assert result == does_not_apply("…Debugger…")


def test_an_idle_end_of_more_than_10_dollars_is_found_whatever_its_share() -> None:
    # 30 of 600 minutes are a twentieth of the run: on 50 hosts of $0.46 $11.50, on 40 $9.20.
    result = verdict(
        processing(minutes=600, hosts=50), ends_idle(idle_minutes=30, minutes=600, count=50)
    )
    assert result == FOUND
    result = verdict(
        processing(minutes=600, hosts=40), ends_idle(idle_minutes=30, minutes=600, count=40)
    )
    assert result == CLEAR


def test_the_tail_is_counted_once() -> None:
    """The same minutes under idle-tail get no dollars in addition."""
    run = processing()
    here = expect_detection(RULE, run, ends_idle(idle_minutes=18))
    tail = replace(
        here, confidence=Confidence.MEASURED, change=CutPhase("Processing", Decimal(1080))
    )
    findings = [(rule_named(RULE).info, here), (RuleInfo("SA211", "idle-tail"), tail)]
    savings = allocate_savings(run, bill(run, market()), findings, market(), Severities(), {})
    assert savings.avoidable_usd == 0
    [quiet] = [finding for finding in savings.findings if finding.subsumed_by]
    assert (quiet.rule.name, quiet.subsumed_by) == ("idle-tail", RULE)


def test_one_working_host_is_work() -> None:
    """The instances wait for each other, not for the upload."""
    works, ends_early = {"cores": [4.0] * 60}, {"cores": [4.0] * 30 + [0.01] * 30}
    assert verdict(processing(hosts=2), hosts(works, ends_early)) == CLEAR


def test_an_idle_cpu_beside_a_gpu_without_points_says_nothing() -> None:
    """The GPU may have worked until the end."""
    with_gpu = batch_job(
        JobKind.PROCESSING, 3600, "ml.g4dn.2xlarge", 1, uploads=(AT_END,), volume_gb=None
    )
    assert verdict(with_gpu, ends_idle(idle_minutes=18)) == cannot_judge("metric_missing")


def test_a_host_without_points_may_have_worked() -> None:
    """Two hosts, of which one is recorded."""
    assert verdict(processing(hosts=2), ends_idle(idle_minutes=18)) == cannot_judge("hosts_missing")
