from decimal import Decimal
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
from tests.fakes.judging import card, found, outcome, unknown
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, later, row

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


test_cases = cases(
    RULE,
    "A long idle end with end of job outputs is found.",
    # 18 of 60 minutes; Continuous for that output, not for the one that has it.
    row(finds("All hosts were idle for the last 18 min of 1 h: outputs in mode EndOfJob are "
        "uploaded then.", builder="derived",
        fix=[("ProcessingOutputConfig.Outputs[result].S3Output.S3UploadMode", "EndOfJob",
        "Continuous")]), processing(60, AT_END, Upload("log", "Continuous"), Upload("features",
        None)), ends_idle(18)),
    "Nothing is counted until a run shows it.",
    # Between nothing and 18 of 60 minutes of $0.46, $0.138.
    row(finds(usd="0.000000", alone="0.000000", span=("0.000000", "0.138000")), processing(),
        ends_idle(18)),
    "Exactly five minutes are not long. Six of 30 are.",
    row(CLEAR, processing(30), ends_idle(5, 30)),
    row(FOUND, processing(30), ends_idle(6, 30)),
    "Exactly a tenth of the run is long. 12 of 120 minutes; 11 are not.",
    row(FOUND, processing(120), ends_idle(12, 120)),
    row(CLEAR, processing(120), ends_idle(11, 120)),
    "A run that was idle throughout has no end to blame. There was no work before it.",
    row(CLEAR, processing(), ends_idle(60)),
    "Minutes without data are not idle. Absent is not zero.",
    row(CLEAR, processing(), used(cpu=[50] * 50 + [None] * 10)),
    "Other jobs are not its concern. The advised job among them.",
    row("not applicable: …no output is uploaded at the end…", replace(processing(),
        uploads=(Upload("result", "Continuous"),)), ends_idle(18)),
    row("not applicable: …no output is uploaded at the end…", replace(processing(), uploads=()),
        ends_idle(18)),
    row("not applicable: …did not complete…", replace(processing(), status="Failed"),
        ends_idle(18)),
    row("not applicable: …Debugger…", replace(processing(), free="built-in Debugger rule"),
        ends_idle(18)),
    "A dear idle end is found whatever its share.",
    # 30 of 600 minutes on fifty hosts of $0.46: a twentieth of the run, $11.50.
    row(FOUND, processing(600, groups=(InstanceGroup("ml.m5.2xlarge", 50),)), ends_idle(30, 600)),
    row(CLEAR, processing(600, groups=(InstanceGroup("ml.m5.2xlarge", 40),)), ends_idle(30, 600)),
)  # fmt: skip


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
    mixed = {f"{run.name}/1": of.series[metric][f"{run.name}/1"],
             f"{run.name}/2": lazy.series[metric][f"{run.name}/2"]}  # fmt: skip
    assert outcome(RULE, run, replace(of, series={metric: mixed})) == Clear()


def test_a_host_without_points_may_have_worked() -> None:
    """Two hosts, of which one is recorded."""
    run = processing(count=2)
    of = ends_idle(18)(run)
    [metric] = of.series
    one = {metric: {f"{run.name}/1": of.series[metric][f"{run.name}/1"]}}
    assert unknown(RULE, run, replace(of, series=one)) in {"coverage_low", "hosts_missing"}
