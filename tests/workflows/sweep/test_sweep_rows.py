"""Histories of a sweep, each with what it must count: the rows of `sweeps.jsonl`."""

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import JobList, ListedJob
from sageaudit.errors import AccessDenied, Throttled, Unavailable
from sageaudit.structs import replace
from sageaudit.workflows.sweep.lists import ListSweepResult
from sageaudit.workflows.sweep.run import DueAuditsSent, SweepPart
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.sweeps import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    TRAINING,
    SweepFlow,
    flow_with,
    refuse_list,
    row,
    store_list,
)

ROWS: dict[str, dict[str, Any]] = {
    sweep["story"]: sweep
    for line in Path(__file__).with_name("sweeps.jsonl").read_text().splitlines()
    for sweep in [json.loads(line)]
}
OF_THE_SWEEP = {"LostEventsFound", "JobsEnded", "JobsMissing", "SweepFailed", "DueAudited"}
"""What these histories count; audits and repeats are counted by `audit`, in its own rows."""
QUARTER = 15 * MINUTE
OTHERS = ("444455556666", "777788889999")
Story = Callable[[], Counter[str]]


def _counts(parts: list[SweepPart]) -> Counter[str]:
    """The metrics of sweeps; the most that were missing at one of them."""
    lists = [part for part in parts if isinstance(part, ListSweepResult)]
    return Counter(
        LostEventsFound=sum(result.lost_events for result in lists),
        JobsEnded=sum(result.ended_count for result in lists),
        JobsMissing=max((result.missing_count for result in lists), default=0),
        SweepFailed=sum(result.error is not None for result in lists),
        DueAudited=sum(part.sent_count for part in parts if isinstance(part, DueAuditsSent)),
    )


def _sweeps(flow: SweepFlow, hours: float, *, audits: bool = True) -> Counter[str]:
    """A sweep each quarter of an hour for so long."""
    return _counts(flow.sweep_until(flow.now + hours * HOUR, audits=audits))


def _lost() -> Counter[str]:
    return _sweeps(flow_with(row("lost", NOON)), 3)


def _on_its_way(minutes: int) -> Counter[str]:
    """The event is delivered and audited so long after the end; a sweep runs meanwhile."""
    job = row("job", NOON - 2 * MINUTE)
    flow = flow_with(job)
    parts = flow.sweep()
    flow.now += minutes * MINUTE
    parts += flow.sweep()
    flow.history.add_audits(job)
    flow.now += QUARTER
    return _counts(parts) + _sweeps(flow, 24)


def _slow_audit() -> Counter[str]:
    flow = flow_with(row("lost", NOON - 50 * MINUTE))
    parts = flow.sweep()
    flow.now += QUARTER
    parts += flow.sweep()
    flow.audit_sent()
    return _counts(parts) + _sweeps(flow, 3)


def _many_due() -> Counter[str]:
    flow = flow_with()
    flow.history.add_audits(
        *(row(f"pool-{n}", NOON - DAY) for n in range(1500)), due_at=NOON - MINUTE
    )
    counts = _sweeps(flow, 1)
    assert len(set(flow.names)) == len(flow.names) == 1500
    return counts


def _first_install() -> Counter[str]:
    flow = SweepFlow(NOON)
    flow.pages.rows += [row(f"job-{n}", NOON - n * DAY / 50) for n in range(1, 1500)]
    parts = flow.sweep_until(NOON + 2 * HOUR)
    looked_back = sum(part.sent_from_before for part in parts if isinstance(part, ListSweepResult))
    assert 47 <= looked_back <= len(flow.names) <= 51
    assert flow.notes.installed
    assert _counts(parts)["JobsEnded"] == _counts(parts)["JobsMissing"] == 0
    seconds = [at for at, _ in flow.pages.requests]
    assert all((b - a).total_seconds() >= 1 for a, b in pairwise(seconds))
    return _counts(parts)


def _across_the_install() -> Counter[str]:
    flow = SweepFlow(NOON)
    flow.pages.rows.append(row("across", NOON + HOUR, lasts=3 * HOUR))
    return _sweeps(flow, 3)


def _stopped(*hours: float) -> Counter[str]:
    for each in hours:
        flow = flow_with(*(row(f"lost-{n}", NOON + n * 20 * MINUTE) for n in range(1, 6)))
        flow.now = NOON + each * HOUR
        counts = _sweeps(flow, 1)
        assert counts["JobsEnded"] == counts["LostEventsFound"] == 5
    return counts


def _backlog() -> Counter[str]:
    flow = flow_with(*(row(f"job-{n}", NOON + n * MINUTE / 60) for n in range(5000)))
    flow.now, flow.max_pages = NOON + 3 * HOUR, 8
    found = _sweeps(flow, 4)
    assert found["LostEventsFound"] == 5000
    assert len(set(flow.names)) == len(flow.names) == 5000
    return found


def _future_watermark() -> Counter[str]:
    """A clock that was wrong wrote it, by minutes or a year: the last day is looked at again."""
    for future in (10 * MINUTE, 365 * DAY):
        flow = flow_with(row("lost", NOON - 2 * HOUR))
        state = flow.state(TRAINING)
        ahead = replace(state, watermark=NOON + future, next_created_after=NOON + future - HOUR)
        store_list(flow.notes, TRAINING, ahead)
        counts = _sweeps(flow, 1)
        assert counts["LostEventsFound"] == 1
    return counts


def _clock_is_wrong() -> Counter[str]:
    for skew in (-5 * MINUTE, 5 * MINUTE):
        flow = flow_with(*(row(f"job-{n}", NOON + n * 7 * MINUTE + skew) for n in range(20)))
        counts = _sweeps(flow, 6)
        assert counts["LostEventsFound"] == counts["JobsEnded"] == 20
    return Counter()


def _third_page_fails() -> Counter[str]:
    """What was read is sent; the next sweep goes on from that page, and counts none twice."""
    jobs = [row(f"job-{n:02}", NOON - 49 * MINUTE + n * MINUTE / 2) for n in range(20)]
    flow = flow_with(*jobs)
    flow.pages.size = 4
    flow.pages.alter_page = refuse_list(TRAINING, Throttled("slow down"), from_page=3)
    before = flow.state(TRAINING).watermark
    parts = flow.sweep()
    failed = [part for part in parts if isinstance(part, ListSweepResult) and part.error]
    assert [(part.job_list, part.lost_events, part.is_complete) for part in failed] == [
        (TRAINING, 8, False)
    ]
    assert len([part for part in parts if isinstance(part, ListSweepResult)]) == len(JobKind)
    assert flow.state(TRAINING).watermark == before
    flow.pages.alter_page = lambda _of, _number, page: page
    flow.pages.requests.clear()
    both = _counts(parts) + _counts(flow.sweep())
    assert both["LostEventsFound"] == both["JobsEnded"] == 20
    assert sorted(flow.names) == sorted(job.ref.name for job in jobs)
    assert len([job_list for _, job_list in flow.pages.requests if job_list == TRAINING]) <= 4
    return _counts(parts)


def _endless() -> Counter[str]:
    flow = flow_with(row("lost", NOON - HOUR, kind=JobKind.TRANSFORM))
    flow.pages.alter_page = refuse_list(TRAINING, Unavailable("returned no last page"))
    before = flow.state(TRAINING).watermark
    found = _counts(flow.sweep())
    assert flow.state(TRAINING).watermark == before
    assert flow.names == ["lost"]
    return found


def _empty_page() -> Counter[str]:
    flow = flow_with(row("lost", NOON - HOUR), row("other", NOON - 90 * MINUTE))
    flow.history.add_audits(flow.pages.rows[1])
    flow.pages.size = 1
    pages: list[list[ListedJob]] = [[], flow.pages.rows[:]]
    flow.pages.alter_page = lambda job_list, n, page: pages[n - 1] if job_list == TRAINING else page
    return _counts(flow.sweep())


def _rows_move() -> Counter[str]:
    """One row is on the first page when the third is read, and on the third before."""
    jobs = [row(f"job-{n}", NOON - HOUR + n * MINUTE) for n in range(6)]
    flow = flow_with(*jobs)
    flow.history.add_audits(*jobs[1:])
    flow.pages.size = 2
    flow.pages.alter_page = lambda job_list, n, page: (
        [job for job in page if job is not jobs[0]] if job_list == TRAINING and n == 3 else page
    )
    parts = flow.sweep()
    flow.pages.alter_page = lambda _of, _number, page: page
    flow.now += QUARTER
    parts += flow.sweep()
    assert flow.names == ["job-0"]
    return _counts(parts)


def _ends_meanwhile() -> Counter[str]:
    flow = flow_with()
    flow.sweep()
    job = row("meanwhile", flow.pages.requests[0][0] + MINUTE / 30)
    flow.pages.rows.append(job)
    flow.now += 10 * MINUTE
    flow.history.add_audits(job)
    return _sweeps(flow, 3)


def _long_job() -> Counter[str]:
    """While it runs, lists begin at its creation; afterwards they do not."""
    flow = SweepFlow(NOON - 30 * DAY)
    flow.sweep()
    flow.pages.rows.append(row("long", NOON, lasts=20 * DAY))
    for days in range(29, 0, -2):
        flow.now = NOON - days * DAY
        flow.sweep()
    flow.now = NOON
    counts = _sweeps(flow, 2)
    assert flow.state(TRAINING).next_created_after > NOON - 2 * HOUR
    return counts


def _one_account_denied() -> Counter[str]:
    accounts = (ACCOUNT, *OTHERS)
    jobs = [row("lost", NOON - HOUR, account=account) for account in accounts]
    flow = flow_with(*jobs, accounts=accounts)
    denied = JobList(OTHERS[0], REGION, JobKind.TRAINING)
    flow.pages.alter_page = refuse_list(
        denied, AccessDenied("sagemaker:ListTrainingJobs", "denied")
    )
    parts = flow.sweep()
    [refused] = [
        part for part in parts if isinstance(part, ListSweepResult) and part.job_list == denied
    ]
    assert (refused.ended_count, refused.missing_count) == (0, 0)
    assert [body["account"] for body in flow.events] == [ACCOUNT, OTHERS[1]]
    return _counts(parts)


def _audit_is_broken() -> Counter[str]:
    flow = flow_with(*(row(f"job-{n}", NOON + n * MINUTE / 10) for n in range(40)))
    return _sweeps(flow, 1, audits=False)


STORIES: dict[str, Story] = {
    "an event is lost, and the sweep finds the job": _lost,
    "an event is lost, and turns up after the sweep's three messages": _lost,
    "the sweep runs while the event waits in the queue": lambda: _on_its_way(2),
    "the sweep runs while the job waits for late metrics": lambda: _on_its_way(22),
    "two sweeps send the same lost job, as its audit is slow": _slow_audit,
    "the name is taken by a new run, whose event is lost": lambda: _sweeps(
        flow_with(row("again", NOON + HOUR)), 3
    ),
    "1,500 runs are due at once": _many_due,
    "sageaudit is installed after 30 days of 50 jobs": _first_install,
    "a job runs across the installation, and its event is lost": _across_the_install,
    "the sweep stands for three hours, and five events are lost": lambda: _stopped(3),
    "the sweep stands for three days, and five events are lost on the first one": lambda: _stopped(
        72, 40 * 24
    ),
    "the backlog has more pages than one sweep can read": _backlog,
    "the sweep's watermark is in the future": _future_watermark,
    "the clock is five minutes behind or ahead": _clock_is_wrong,
    "the third of five pages fails": _third_page_fails,
    "the list never ends": _endless,
    "an empty page comes before a full one": _empty_page,
    "rows move while they are listed": _rows_move,
    "a job ends while its list is read": _ends_meanwhile,
    "a job of 20 days ends, and its event is lost": _long_job,
    "lists are denied in one of three accounts": _one_account_denied,
    "the audit is broken while 40 jobs end": _audit_is_broken,
    "no job runs for a weekend": lambda: _sweeps(flow_with(), 48),
}


def _disagreements(wanted: list[str], found: Counter[str]) -> list[str]:
    """The metrics of a row that a history does not have."""
    wrong = []
    for text in wanted:
        parsed = re.match(r"(\w+)(<=|=)(\d+)(?:\.\.(\d+))?", text)
        assert parsed is not None
        if parsed[1] not in OF_THE_SWEEP:
            continue
        low = 0 if parsed[2] == "<=" else int(parsed[3])
        if not low <= found[parsed[1]] <= int(parsed[4] or parsed[3]):
            wrong.append(f"{text}, not {found[parsed[1]]}")
    return wrong


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_history_counts_what_its_row_says(name: str) -> None:
    """Every row has its story."""
    assert _disagreements(ROWS[name]["metrics"], STORIES[name]()) == []
