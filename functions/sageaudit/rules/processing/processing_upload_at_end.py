"""A processing job is idle at its end while its results are uploaded.

What it checks: A completed job has an output with S3UploadMode EndOfJob. At its end, CPU and GPU of
    all hosts were idle for over 5 minutes and at least 10% of the run, or for over 10 minutes that
    cost at least $10.
Why it costs: All instances are billed until the upload has ended.
Saving: Between 0 and the whole idle time, because Continuous moves the uploads into the run, which
    may then take longer. The low end, 0, is counted.
When it is wrong: Code that hangs at its end looks the same, because processing jobs have no phases
    and SageMaker publishes no network metric. Continuous uploads a file again if it is rewritten,
    and leaves partial results in S3 if the job fails.
What to do: Set S3UploadMode to Continuous. Or write fewer, compressed files (Parquet), and upload
    them in parallel.
Sources: botocore, ProcessingS3Output.S3UploadMode: "continuously or after the job completes".
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.usage.edges import gpu_recording_gap, idle_tail
from sageaudit.rules import api
from sageaudit.rules.phases.phase_share import EXPENSIVE_ABOVE_S, EXPENSIVE_ABOVE_USD, phase_usd

MIN_LENGTH = api.Threshold("min_duration_s", 300, "seconds", "a few minutes at the end are usual")
MIN_SHARE = api.Threshold("min_share_percent", 10, "percent of the run", "a tenth of the bill")
_END_OF_JOB = "EndOfJob"
_MODE = "ProcessingOutputConfig.Outputs[{}].S3Output.S3UploadMode"


def _end_of_job_outputs(job: api.Job) -> list[str]:
    return [upload.name for upload in job.uploads if upload.mode == _END_OF_JOB]


def _no_end_of_job_reason(case: api.JobCase) -> str | None:
    return None if _end_of_job_outputs(case.job) else "no output is uploaded at the end of the job"


@api.rule(
    id="SA803",
    scope=api.JobCase,
    kinds={api.JobKind.PROCESSING},
    thresholds=(MIN_LENGTH, MIN_SHARE, EXPENSIVE_ABOVE_USD, EXPENSIVE_ABOVE_S),
    required_metrics=(api.Metric.CPU,),
    tolerates_gaps=True,
    finds_waste=True,
    max_period_s=300,
    uses_whole_run=True,
    not_applicable=(
        api.free_reason,
        api.serverless_reason,
        api.not_completed_reason,
        _no_end_of_job_reason,
    ),
    subsumes={"idle-tail"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Counts the idle minutes at the end of the whole run."""
    usage, outputs = case.whole_run, _end_of_job_outputs(case.job)
    if missing := gpu_recording_gap(usage):
        return api.unknown_from_missing(missing)
    tail_periods = len(idle_tail(usage))
    tail_s = Decimal(tail_periods * (usage.period_s or 0))
    percent = Decimal(100 * tail_periods) / usage.points
    is_long = tail_s > case.threshold(MIN_LENGTH) and percent >= case.threshold(MIN_SHARE)
    if not (is_long or _is_expensive(case, tail_s, percent)) or tail_periods == usage.points:
        return api.Clear()
    if len(usage.hosts) < (usage.hosts_expected or 0):
        hosts_text = f"{len(usage.hosts)} of {usage.hosts_expected} hosts"
        return api.Unknown("hosts_missing", f"{hosts_text} have points: another may have worked")
    return api.derived_saving(
        f"All hosts were idle for the last {api.duration_text(tail_s)} of "
        f"{api.minutes_text(usage.minutes)}: outputs with S3UploadMode EndOfJob are uploaded then.",
        {
            "idle_tail_s": tail_s,
            "idle_tail_percent": round(percent, 1),
            "minutes": round(usage.minutes),
            "end_of_job_outputs": len(outputs),
        },
        fix=tuple(api.Parameter(_MODE.format(name), _END_OF_JOB, "Continuous") for name in outputs),
        caution=(
            "Continuous uploads move into the run, so the saving is between nothing and all of "
            "this time. Code that hangs at its end looks the same: check when the results were "
            "written."
        ),
        **api.phase_cut_range("Processing", tail_s),
    )


def _is_expensive(case: api.JobCase, tail_s: Decimal, percent: Decimal) -> bool:
    run_usd = phase_usd(case.bill, "Processing")
    is_above_usd = run_usd is not None and run_usd * percent / 100 >= case.threshold(
        EXPENSIVE_ABOVE_USD
    )
    return is_above_usd and tail_s > case.threshold(EXPENSIVE_ABOVE_S)
