"""Writes docs/evidence/recorded-gpu-jobs.md: the audits of recorded jobs with idle GPUs.

Part of `make docs`. A job is in the table if its recording has at least three GPU points and their
mean is under 15% of its GPUs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from sageaudit.adapters.files import recording
from sageaudit.domain.audit.document import AuditDocument, IdleCapacityDocument, document
from sageaudit.domain.audit.finding_document import FindingDocument, is_standing
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.money import format_usd
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.judged_use import PooledRuns, pool_runs, short_run_usage
from sageaudit.domain.usage.measurements import Metric
from sageaudit.output.text.money import about_text, percent_text
from sageaudit.output.text.words import count_text
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.judge import audit_job
from sageaudit.workflows.recordings.jobs import MeasuredJob, measure_recording
from tools.pages import DOCS, ROOT

PAGE = DOCS / "evidence" / "recorded-gpu-jobs.md"
RECORDINGS = ROOT / "tests" / "recorded" / "data" / "jobs"
LOW_PERCENT = 15.0
"""Jobstats shows a job's mean GPU use in red at 15% or less."""
MIN_POINTS = 3
"""Fewer points are too few for a mean."""
_USE_RULE_IDS = ("SA1", "SA2")
"""The ids of rules about phases and use begin with these."""
_JUDGES_USE = "gpu-underused"
"""The rule whose answer is shown as the reason if no rule has a finding."""
REPEATS = 9
"""Runs before a short one: the most that its audit reads."""
_ZERO = Decimal(0)

_PAGE = """\
# Recorded GPU jobs that hardly used their GPU

{jobs} recorded jobs have at least three GPU points. In {low} of these jobs the mean of the points
is under 15%, which Jobstats shows in red. Their runs are short, {hours} GPU-hours in total. In
{idle} of these hours ({share}) the GPU did no work: {list} at list price{guessed}.
Of that amount, {counted} counts as avoidable or lost.

The audits of {figures} of these jobs show the hours under `idle_capacity`, which is in no sum.
{found} have a finding that counts dollars, or a finding about their phases or their use. For the
others, the column *what the audit says* has the reason why `gpu-underused` has no finding. Messages
and the terminal show idle capacity only from $10, so they do not show it for any of these runs.

{short} of these jobs have under 15 active minutes, which is too short for a rule to judge them
alone. With a history, such a run is judged together with the last runs of its family. The column
*after similar runs* says what the audit would find if the family had {repeats} such runs before.

{head}
|---|---|--:|--:|--:|--:|---|---|
{rows}

*Hours* are the hours billed for each instance. *Mean GPU use* is that of all recorded points. *Idle
GPU-hours* are the billed hours, including download and upload, in which no GPU works. A missing
point counts as work.
"""


_COLUMNS = (
    *("recording", "ran on", "hours", "mean GPU use", "idle GPU-hours", "at list price"),
    *("what the audit says", "after similar runs"),
)


@dataclass(frozen=True, slots=True)
class LowJob:
    """A recorded job, the mean of its GPU points in percent, and its audit."""

    recording: str
    mean: float
    audit: AuditDocument
    in_family: AuditDocument | None
    """The audit of a short job after REPEATS similar runs; None if the job is judged alone."""

    @property
    def findings(self) -> list[FindingDocument]:
        """The findings that stand and are about its phases or its use, or count dollars."""
        return _findings(self.audit)

    @property
    def reason(self) -> str | None:
        """Why gpu-underused has no finding; None if it judged the job."""
        return _reason(self.audit)


def _findings(audit: AuditDocument) -> list[FindingDocument]:
    return [
        finding
        for finding in audit["findings"]
        if is_standing(finding)
        and (finding["id"].startswith(_USE_RULE_IDS) or _has_counted_dollars(finding))
    ]


def _reason(audit: AuditDocument) -> str | None:
    """Returns why gpu-underused has no finding; None if it judged the job."""
    for row in (*audit["unknown"], *audit["not_applicable"]):
        if row["rule"] == _JUDGES_USE:
            return row["reason"]
    return None


@cache
def gpu_jobs() -> tuple[LowJob, ...]:
    """Returns every recorded job with at least three GPU points, whatever their mean."""
    jobs = []
    for path in sorted(RECORDINGS.glob("*.json")):
        recorded_job = recording.read(path)
        if isinstance(recorded_job, recording.RecordedSet):
            continue
        run = measure_recording(recorded_job)
        points = [
            value / (run.usage.gpus or 1)
            for series in recorded_job.series
            if series.metric == Metric.GPU.value
            for value in series.values
            if value is not None
        ]
        if len(points) >= MIN_POINTS:
            mean = math.fsum(points) / len(points)
            jobs.append(LowJob(path.stem, mean, _audit(run), _audit_in_family(run)))
    return tuple(jobs)


def low_use_jobs() -> list[LowJob]:
    """Returns the jobs with a mean under 15%."""
    return [job for job in gpu_jobs() if job.mean < LOW_PERCENT]


def _audit(run: MeasuredJob, family: PooledRuns | None = None) -> AuditDocument:
    ruleset = catalogue.ruleset()
    audit = audit_job(run.job, run.usage, run.market, Policy(), ruleset, now=run.now, pool=family)
    return document(audit)


def _audit_in_family(run: MeasuredJob) -> AuditDocument | None:
    own_usage = short_run_usage(run.usage)
    if own_usage is None:
        return None
    return _audit(run, pool_runs(own_usage, [(run.job.name, run.usage)] * REPEATS))


def page() -> str:
    """Returns the whole of docs/evidence/recorded-gpu-jobs.md."""
    rows = low_use_jobs()
    figures = [figure for job in rows if (figure := job.audit["idle_capacity"])]
    paid = sum((figure["paid"] for figure in figures), _ZERO)
    idle = sum((figure["idle"] for figure in figures), _ZERO)
    priced = [
        figure
        for job in rows
        if (figure := job.audit["idle_capacity"]) and figure["list_usd"] and not _is_estimated(job)
    ]
    return _PAGE.format(
        jobs=len(gpu_jobs()),
        low=len(rows),
        hours=f"{paid:.1f}",
        idle=f"{idle:.1f}",
        share=percent_text(idle, paid),
        list=format_usd(sum((figure["list_usd"] or _ZERO for figure in priced), _ZERO)),
        counted=format_usd(sum((figure["counted_usd"] or _ZERO for figure in priced), _ZERO)),
        guessed=_left_out_text(figures, [job for job in rows if _is_estimated(job)]),
        found=sum(bool(job.findings) for job in rows),
        rows="\n".join(_row(job) for job in rows),
        figures=len(figures),
        short=sum(job.in_family is not None for job in rows),
        repeats=REPEATS,
        head=f"| {' | '.join(_COLUMNS)} |",
    )


def _row(job: LowJob) -> str:
    figure = job.audit["idle_capacity"]
    seconds = [part["seconds"] or _ZERO for part in job.audit["phases"] if part["billed"]]
    idle = value = "unknown"
    if figure is not None:
        idle = f"{figure['idle']:.2f} of {figure['paid']:.2f}"
        value = "no known price"
        if figure["list_usd"] is not None:
            value = about_text(format_usd(figure["list_usd"]), estimated=_is_estimated(job))
    cells = [
        job.recording,
        job.audit["job"]["instances"] or "unknown",
        f"{sum(seconds, _ZERO) / 3600:.2f}",
        f"{job.mean:.1f}%",
        idle,
        value,
        _answer(job.audit),
        "the same: it is judged alone" if job.in_family is None else _answer(job.in_family),
    ]
    return f"| {' | '.join(cells)} |"


def _is_estimated(job: LowJob) -> bool:
    """Whether the job's rate is an estimate."""
    return bool(job.audit["bill"]["estimated"])


def _left_out_text(figures: list[IdleCapacityDocument], estimated: list[LowJob]) -> str:
    """Returns which jobs the sum leaves out: those at an estimated rate, and unpriced ones."""
    guesses = [figure for job in estimated if (figure := job.audit["idle_capacity"])]
    unpriced = sum(figure["list_usd"] is None for figure in figures)
    parts = []
    if guesses:
        value = format_usd(sum((figure["list_usd"] or _ZERO for figure in guesses), _ZERO))
        parts.append(f"{count_text(len(guesses), 'job')} at an estimated rate (about {value})")
    if unpriced:
        parts.append(f"{count_text(unpriced, 'job')} on a type without a known price")
    return f", without {' and '.join(parts)}" if parts else ""


def _answer(audit: AuditDocument) -> str:
    """Returns the findings with their dollars or, if there are none, the reason."""
    texts = [_finding(finding) for finding in _findings(audit)]
    if texts:
        return ", ".join(texts)
    return f"no finding: {_reason(audit) or 'every rule on use is clear'}"


def _has_counted_dollars(finding: FindingDocument) -> bool:
    return Bucket(finding["bucket"]).is_counted and bool(finding["saving_usd"])


def _finding(finding: FindingDocument) -> str:
    saving = finding["saving_usd"]
    amount = about_text(format_usd(saving), estimated=finding["estimated"])
    dollars = f" {amount} {finding['bucket']}" if saving else ""
    return f"[{finding['rule']}](../rules/{finding['rule']}.md){dollars}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
