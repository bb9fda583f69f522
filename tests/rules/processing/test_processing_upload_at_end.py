from decimal import Decimal
from functools import partial
from typing import Any

from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.change import CutPhase
from sageaudit.domain.bill.counterfactual import Severities, allocate
from sageaudit.domain.bill.finding import Clear, Confidence, RuleName
from sageaudit.domain.job.job import InstanceGroup, Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import Upload
from sageaudit.structs import replace
from tests.fakes import batch_jobs
from tests.fakes.batch_jobs import batch_job
from tests.fakes.jobs import market
from tests.fakes.judging import answer, card, found, outcome, unknown
from tests.fakes.rule_cases import CLEAR, FOUND, does_not_apply, finds, later

used = later(batch_jobs.used)
RULE = "processing-upload-at-end"
AT_END = Upload("result", "EndOfJob")


def processing(minutes: int = 60, *outputs: Upload, **changes: Any) -> Job:
    """On 8 vCPUs at $0.46 an hour."""
    return batch_job(JobKind.PROCESSING, minutes, uploads=outputs or (AT_END,), **changes)


@later
def ends_idle(run: Job, tail: int, minutes: int = 60) -> Any:
    """Busy but for so many minutes at the end."""
    return batch_jobs.used(run, cpu=[50] * (minutes - tail) + [0.1] * tail)


verdict = partial(answer, RULE)


def test_a_long_idle_end_with_end_of_job_outputs_is_found() -> None:
    # 18 of 60 minutes; Continuous for that output, not for the one that has it.
    result = verdict(
        processing(60, AT_END, Upload("log", "Continuous"), Upload("features", None)), ends_idle(18)
    )
    assert result == finds(
        "All hosts were idle for the last 18 min of 1 h: outputs in mode EndOfJob are "
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
    assert verdict(processing(), ends_idle(18)) == finds(
        usd="0.000000", alone="0.000000", span=("0.000000", "0.138000")
    )


def test_exactly_five_minutes_are_not_long() -> None:
    """Six of 30 are."""
    assert verdict(processing(30), ends_idle(5, 30)) == CLEAR
    assert verdict(processing(30), ends_idle(6, 30)) == FOUND


def test_exactly_a_tenth_of_the_run_is_long() -> None:
    """12 of 120 minutes; 11 are not."""
    assert verdict(processing(120), ends_idle(12, 120)) == FOUND
    assert verdict(processing(120), ends_idle(11, 120)) == CLEAR


def test_a_run_that_was_idle_throughout_has_no_end_to_blame() -> None:
    """There was no work before it."""
    assert verdict(processing(), ends_idle(60)) == CLEAR


def test_minutes_without_data_are_not_idle() -> None:
    """Absent is not zero."""
    assert verdict(processing(), used(cpu=[50] * 50 + [None] * 10)) == CLEAR


def test_other_jobs_are_not_its_concern() -> None:
    """The advised job among them."""
    result = verdict(
        replace(processing(), uploads=(Upload("result", "Continuous"),)), ends_idle(18)
    )
    assert result == does_not_apply("…no output is uploaded at the end…")
    result = verdict(replace(processing(), uploads=()), ends_idle(18))
    assert result == does_not_apply("…no output is uploaded at the end…")
    result = verdict(replace(processing(), status="Failed"), ends_idle(18))
    assert result == does_not_apply("…did not complete…")
    result = verdict(replace(processing(), free="built-in Debugger rule"), ends_idle(18))
    assert result == does_not_apply("…Debugger…")


def test_a_dear_idle_end_is_found_whatever_its_share() -> None:
    # 30 of 600 minutes on fifty hosts of $0.46: a twentieth of the run, $11.50.
    result = verdict(
        processing(600, groups=(InstanceGroup("ml.m5.2xlarge", 50),)), ends_idle(30, 600)
    )
    assert result == FOUND
    result = verdict(
        processing(600, groups=(InstanceGroup("ml.m5.2xlarge", 40),)), ends_idle(30, 600)
    )
    assert result == CLEAR


def test_the_tail_is_one_story() -> None:
    """The same minutes under idle-tail get no dollars in addition."""
    run = processing()
    here = found(RULE, run, ends_idle(18))
    tail = replace(
        here, confidence=Confidence.MEASURED, change=CutPhase("Processing", Decimal(1080))
    )
    both = [(card(RULE).name, here), (RuleName("SA211", "idle-tail"), tail)]
    savings = allocate(run, bill(run, market()), both, market(), Severities(), {})
    assert savings.avoidable_usd == 0
    [quiet] = [one for one in savings.findings if one.subsumed_by]
    assert (quiet.rule.name, quiet.subsumed_by) == ("idle-tail", RULE)


def test_one_working_host_is_work() -> None:
    """The instances wait for each other, not for the upload."""
    run = processing(count=2)
    of = used(cpu=[50] * 60)(run)
    lazy = ends_idle(30)(run)
    [metric] = of.series
    mixed = {
        f"{run.name}/1": of.series[metric][f"{run.name}/1"],
        f"{run.name}/2": lazy.series[metric][f"{run.name}/2"],
    }
    assert outcome(RULE, run, replace(of, series={metric: mixed})) == Clear()


def test_a_host_without_points_may_have_worked() -> None:
    """Two hosts, of which one is recorded."""
    run = processing(count=2)
    of = ends_idle(18)(run)
    [metric] = of.series
    one = {metric: {f"{run.name}/1": of.series[metric][f"{run.name}/1"]}}
    assert unknown(RULE, run, replace(of, series=one)) in {"coverage_low", "hosts_missing"}
