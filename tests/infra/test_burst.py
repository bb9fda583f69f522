"""How much runs at once: in a new account, and while many jobs end together."""

import re
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path

import pytest

from infra.bundling import ROOT
from infra.settings import Settings
from sageaudit.adapters.aws import pace
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import grace
from tests.fakes.paced_queue import PacedAuditQueue
from tests.infra.reading import Template, of_type, read
from tests.infra.test_alarms import EVERY

MINUTE_S, HOUR_S, SWEEP_S = 60, 3600, 15 * 60
DELAY_S, AUDIT_S = 300, 10
"""The queue's own delay, and an audit: so long in the words of docs/before-you-deploy.md."""
NEW_ACCOUNT, RECOMMENDED = 10, 25
PAGE = re.sub(r"\s+", " ", (ROOT / "docs" / "before-you-deploy.md").read_text(encoding="utf-8"))
WATCHES = {watch.name: watch for watch in EVERY}


def mappings(template: Template) -> dict[str, int]:
    """The most functions that each source runs; one for each shard of a stream, of which a table
    of this size has one.
    """
    return {
        name: properties.get("ScalingConfig", {}).get("MaximumConcurrency", 1)
        for name, properties in of_type(template, "AWS::Lambda::EventSourceMapping").items()
    }


def test_a_new_account_can_run_every_function_while_audits_take_all_that_they_may(
    templates: Path,
) -> None:
    """With the stack's own topic alone; each further channel may wait for its turn."""
    template = read(templates, "plain.json")
    sources = mappings(template)
    [audits] = [most for name, most in sources.items() if name.startswith("AuditSource")]
    schedules = of_type(template, "AWS::Scheduler::Schedule").values()
    # Sweep and watch begin at different minutes of a quarter of an hour.
    minutes = [schedule["ScheduleExpression"].partition(" ")[0] for schedule in schedules]
    assert len(set(minutes)) == len(schedules)
    assert audits == Settings().audits_at_once
    assert audits + len(sources) - 1 + len(schedules) - 1 <= NEW_ACCOUNT
    functions = of_type(template, "AWS::Lambda::Function").values()
    assert not [function for function in functions if "ReservedConcurrentExecutions" in function]


def done_after(jobs: int, at_once: int) -> list[float]:
    """Seconds from the first end until each audit is there; the jobs end within one minute."""
    ends = [number * MINUTE_S / jobs for number in range(jobs)]
    now = 0.0
    queue = PacedAuditQueue(lambda: now, at_once, AUDIT_S, deque(end + DELAY_S for end in ends))
    now = 2.0 * DELAY_S
    queue.depth()
    waits = queue.waits_s["today"]
    return [end + DELAY_S + wait + AUDIT_S for end, wait in zip(ends, waits, strict=True)]


def raised(done_s: Sequence[float], first_sweep_s: int) -> set[str]:
    """The alarms that what is counted raises: by sweeps every 15 minutes, and of the queue."""
    missing, found, sent = Counter[int](), Counter[int](), set[int]()
    for now in range(first_sweep_s, 6 * HOUR_S, SWEEP_S):
        late = now - MINUTE_S - grace(JobKind.TRAINING).total_seconds()
        unaudited = {job for job, at in enumerate(done_s) if at > now and late >= 0}
        missing[now // HOUR_S] += len(unaudited)
        found[now // HOUR_S] += len(unaudited - sent)
        sent |= unaudited
    queue = WATCHES["FinishedJobsLate"]
    breaches = {
        "JobsMissing": sum(
            missing[h] - found[h] > WATCHES["JobsMissing"].threshold for h in range(6)
        ),
        "EventsLost": sum(found[h] > WATCHES["EventsLost"].threshold for h in range(6)),
        queue.name: (max(done_s) - queue.threshold) // queue.period_s,
    }
    return {name for name, count in breaches.items() if count >= WATCHES[name].datapoints_to_alarm}


@pytest.mark.parametrize(
    ("jobs", "at_once", "minutes", "alarms"),
    [
        (2000, RECOMMENDED, 18.5, set()),
        (2000, Settings().audits_at_once, 72, {"JobsMissing"}),
        (900, Settings().audits_at_once, 35.2, set()),
    ],
)
def test_jobs_that_end_together_are_audited_in_the_time_that_the_page_says(
    jobs: int, at_once: int, minutes: float, alarms: set[str]
) -> None:
    """Whenever the sweep comes."""
    done_s = done_after(jobs, at_once)
    assert minutes - 1 < max(done_s) / MINUTE_S <= minutes
    for first_sweep_s in range(0, SWEEP_S, MINUTE_S):
        assert raised(done_s, first_sweep_s) == alarms


def test_the_recommended_number_stays_within_the_rates() -> None:
    """Of SageMaker, and of CloudWatch for jobs of four GPU hosts and a day."""
    audits_a_second = RECOMMENDED / AUDIT_S
    assert 2 * audits_a_second <= pace.DESCRIBES_PER_SECOND  # Describe and ListTags
    assert audits_a_second <= pace.RATES["GetMetricData"]
    assert audits_a_second * 4 * 5 * 1440 <= pace.POINTS_PER_SECOND


def test_the_page_says_these_numbers() -> None:
    """In the words about `audits_at_once`."""
    assert f"| {RECOMMENDED} | after 19 minutes |" in PAGE
    for words in ("after 72 minutes", "900 jobs", "a quota of 50 or more"):
        assert words in PAGE
