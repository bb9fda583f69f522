"""Recorded jobs too short to be judged alone, as the last run of a family of equal runs."""

from functools import cache

from sageaudit.adapters.files import recording
from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.judged_use import pool_runs, short_run_usage
from sageaudit.domain.usage.measurements import MIN_ACTIVE_MINUTES, Measurements
from sageaudit.domain.usage.packing import pack, unpack
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.judge import audit_job
from sageaudit.workflows.audit.stored import MAX_DETAIL_BYTES
from sageaudit.workflows.recordings.jobs import MeasuredJob, measure_recording
from tools.pages.recorded_gpus import RECORDINGS, low_use_jobs

JUDGES_USE = {"gpu-idle", "gpu-underused", "some-gpus-unused", "gpu-too-big"}
"""Rules that judge a job's GPUs."""
SIBLINGS = ["profiled-062-g4dn-xlarge", "profiled-063-g4dn-xlarge", "profiled-064-g4dn-xlarge"]
"""Three runs of one script with the same profile."""


@cache
def recorded_run(name: str) -> MeasuredJob:
    """Returns a recorded job with its measurements."""
    read = recording.read(RECORDINGS / f"{name}.json")
    assert isinstance(read, recording.Recording)
    return measure_recording(read)


def stored(run: MeasuredJob) -> Measurements:
    """Returns a run's measurements as the history stores them."""
    return unpack(pack(run.usage, MAX_DETAIL_BYTES)[0], run.job, run.market.types)


def audited(run: MeasuredJob, earlier: list[MeasuredJob]) -> Audit:
    """Returns the run's audit after these earlier runs of its family."""
    own = short_run_usage(run.usage)
    assert own is not None
    return audit_job(
        run.job,
        run.usage,
        run.market,
        Policy(),
        catalogue.ruleset(),
        now=run.now,
        earlier_runs=(),
        pool=pool_runs(
            own, ((earlier_run.job.name, stored(earlier_run)) for earlier_run in earlier)
        ),
    )


def judged_use(audit: AuditDocument) -> bool:
    """Whether a rule judged the use of its GPUs."""
    found_rules = {finding["rule"] for finding in audit["findings"]}
    return bool(JUDGES_USE & (found_rules | set(audit["clear"])))


def test_a_short_job_is_judged_with_runs_like_it() -> None:
    """A short job is not judged alone, but as the last of many, for its own bill only.

    18 of the 22 jobs with hardly any GPU work are short, as real runs often are.
    """
    short = [job.recording for job in low_use_jobs() if job.in_family is not None]
    assert len(short) == 18
    for name in short:
        run = recorded_run(name)
        alone = document(audited(run, []))
        assert not judged_use(alone), name
        own = short_run_usage(run.usage)
        assert own is not None
        audit = document(audited(run, [run] * 9))
        pooled = audit["audit"]["pool"]
        if 10 * own.minutes < MIN_ACTIVE_MINUTES:
            assert pooled is None, name
            continue
        assert pooled is not None, name
        assert pooled["active_minutes"] >= MIN_ACTIVE_MINUTES
        assert judged_use(audit), name
        assert audit["bill"] == alone["bill"]
        total, avoidable = audit["bill"]["total_usd"], audit["avoidable_usd"]
        assert total is None or (avoidable is not None and 0 <= avoidable <= total), name
        [finding] = [finding for finding in audit["findings"] if finding["rule"] in JUDGES_USE]
        assert f"active minutes of this family's last {pooled['runs']} runs" in finding["summary"]


def test_runs_of_one_script_are_judged_together() -> None:
    """Three runs of 10 or 11 minutes with the GPU at 22% have 30 minutes together."""
    first, second, third = map(recorded_run, SIBLINGS)
    audit = document(audited(third, [second, first]))
    pooled = audit["audit"]["pool"]
    assert pooled is not None
    assert pooled["runs"] == 3
    assert judged_use(audit)


def test_a_healthy_run_among_them_is_not_blamed() -> None:
    """A run with the GPU at 95% has no such finding after nine idle runs."""
    healthy, idle = (
        recorded_run("cloudwatch-010-g4dn-xlarge"),
        recorded_run("profiled-024-g4dn-xlarge"),
    )
    audit = document(audited(healthy, [idle] * 9))
    assert not {finding["rule"] for finding in audit["findings"]} & JUDGES_USE
