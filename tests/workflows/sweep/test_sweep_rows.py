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
from sageaudit.domain.sweep import Listed, ListOfJobs
from sageaudit.errors import AccessDenied, Throttled, Unavailable
from sageaudit.structs import replace
from sageaudit.workflows.sweep.run import DueSent, Swept
from sageaudit.workflows.sweep.watch import WatchedList
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.sweeps import DAY, HOUR, MINUTE, NOON, TRAINING, Office, an_office, refuses, row

ROWS: dict[str, dict[str, Any]] = {
    one["id"]: one
    for line in Path(__file__).with_name("sweeps.jsonl").read_text().splitlines()
    for one in [json.loads(line)]
}
OF_THE_SWEEP = {"ReconcilerFound", "JobsEnded", "JobsMissing", "SweepFailed", "DueAudited"}
"""What these histories count; audits and repeats are counted by `audit`, in its own rows."""
QUARTER = 15 * MINUTE
OTHERS = ("444455556666", "777788889999")
Story = Callable[[], Counter[str]]


def _counts(parts: list[DueSent | Swept | WatchedList]) -> Counter[str]:
    """The metrics of sweeps; the most that were missing at one of them."""
    lists = [part for part in parts if isinstance(part, Swept)]
    return Counter(
        ReconcilerFound=sum(one.found for one in lists),
        JobsEnded=sum(one.ended for one in lists),
        JobsMissing=max((one.missing for one in lists), default=0),
        SweepFailed=sum(one.error is not None for one in lists),
        DueAudited=sum(part.sent for part in parts if isinstance(part, DueSent)),
    )


def _sweeps(office: Office, hours: float, *, audits: bool = True) -> Counter[str]:
    """A sweep each quarter of an hour for so long."""
    return _counts(office.sweeps(office.now + hours * HOUR, audits=audits))


def _lost() -> Counter[str]:
    return _sweeps(an_office(row("lost", NOON)), 3)


def _on_its_way(minutes: int) -> Counter[str]:
    """The event is delivered and audited so long after the end; a sweep runs meanwhile."""
    job = row("job", NOON - 2 * MINUTE)
    office = an_office(job)
    parts = office.sweep()
    office.now += minutes * MINUTE
    parts += office.sweep()
    office.history.audited(job)
    office.now += QUARTER
    return _counts(parts) + _sweeps(office, 24)


def _slow_audit() -> Counter[str]:
    office = an_office(row("lost", NOON - 50 * MINUTE))
    parts = office.sweep()
    office.now += QUARTER
    parts += office.sweep()
    office.audit_sent()
    return _counts(parts) + _sweeps(office, 3)


def _many_due() -> Counter[str]:
    office = an_office()
    office.history.audited(
        *(row(f"pool-{n}", NOON - DAY) for n in range(1500)), due_at=NOON - MINUTE
    )
    counts = _sweeps(office, 1)
    assert len(set(office.queue.names)) == len(office.queue.names) == 1500
    return counts


def _first_install() -> Counter[str]:
    office = Office(NOON)
    office.pages.rows += [row(f"job-{n}", NOON - n * DAY / 50) for n in range(1, 1500)]
    parts = office.sweeps(NOON + 2 * HOUR)
    looked_back = sum(part.looked_back for part in parts if isinstance(part, Swept))
    assert 47 <= looked_back <= len(office.queue.names) <= 51
    assert office.notes.installed
    assert _counts(parts)["JobsEnded"] == _counts(parts)["JobsMissing"] == 0
    seconds = [at for at, _ in office.pages.asked]
    assert all((b - a).total_seconds() >= 1 for a, b in pairwise(seconds))
    return _counts(parts)


def _across_the_install() -> Counter[str]:
    office = Office(NOON)
    office.pages.rows.append(row("across", NOON + HOUR, lasts=3 * HOUR))
    return _sweeps(office, 3)


def _stopped(*hours: float) -> Counter[str]:
    for each in hours:
        office = an_office(*(row(f"lost-{n}", NOON + n * 20 * MINUTE) for n in range(1, 6)))
        office.now = NOON + each * HOUR
        counts = _sweeps(office, 1)
        assert counts["JobsEnded"] == counts["ReconcilerFound"] == 5
    return counts


def _backlog() -> Counter[str]:
    office = an_office(*(row(f"job-{n}", NOON + n * MINUTE / 60) for n in range(5000)))
    office.now, office.pages_a_sweep = NOON + 3 * HOUR, 8
    found = _sweeps(office, 4)
    assert found["ReconcilerFound"] == 5000
    assert len(set(office.queue.names)) == len(office.queue.names) == 5000
    return found


def _future_watermark() -> Counter[str]:
    """A clock that was wrong wrote it, by minutes or a year: the last day is looked at again."""
    for future in (10 * MINUTE, 365 * DAY):
        office = an_office(row("lost", NOON - 2 * HOUR))
        state = office.notes.states[TRAINING]
        ahead = replace(state, watermark=NOON + future, listed_from=NOON + future - HOUR)
        office.notes.states[TRAINING] = ahead
        counts = _sweeps(office, 1)
        assert counts["ReconcilerFound"] == 1
    return counts


def _clock_is_wrong() -> Counter[str]:
    for skew in (-5 * MINUTE, 5 * MINUTE):
        office = an_office(*(row(f"job-{n}", NOON + n * 7 * MINUTE + skew) for n in range(20)))
        counts = _sweeps(office, 6)
        assert counts["ReconcilerFound"] == counts["JobsEnded"] == 20
    return Counter()


def _third_page_fails() -> Counter[str]:
    """What was read is sent; the next sweep goes on from that page, and counts none twice."""
    jobs = [row(f"job-{n:02}", NOON - 49 * MINUTE + n * MINUTE / 2) for n in range(20)]
    office = an_office(*jobs)
    office.pages.size = 4
    office.pages.spoils = refuses(TRAINING, Throttled("slow down"), from_page=3)
    before = office.notes.states[TRAINING].watermark
    parts = office.sweep()
    failed = [part for part in parts if isinstance(part, Swept) and part.error]
    assert [(part.of, part.found, part.whole) for part in failed] == [(TRAINING, 8, False)]
    assert len([part for part in parts if isinstance(part, Swept)]) == len(JobKind)
    assert office.notes.states[TRAINING].watermark == before
    office.pages.spoils = lambda _of, _number, page: page
    office.pages.asked.clear()
    both = _counts(parts) + _counts(office.sweep())
    assert both["ReconcilerFound"] == both["JobsEnded"] == 20
    assert sorted(office.queue.names) == sorted(job.ref.name for job in jobs)
    assert len([of for _, of in office.pages.asked if of == TRAINING]) <= 4
    return _counts(parts)


def _endless() -> Counter[str]:
    office = an_office(row("lost", NOON - HOUR, kind=JobKind.TRANSFORM))
    office.pages.spoils = refuses(TRAINING, Unavailable("returned no last page"))
    before = office.notes.states[TRAINING].watermark
    found = _counts(office.sweep())
    assert office.notes.states[TRAINING].watermark == before
    assert office.queue.names == ["lost"]
    return found


def _empty_page() -> Counter[str]:
    office = an_office(row("lost", NOON - HOUR), row("other", NOON - 90 * MINUTE))
    office.history.audited(office.pages.rows[1])
    office.pages.size = 1
    pages: list[list[Listed]] = [[], office.pages.rows[:]]
    office.pages.spoils = lambda of, n, page: pages[n - 1] if of == TRAINING else page
    return _counts(office.sweep())


def _rows_move() -> Counter[str]:
    """One row is on the first page when the third is read, and on the third before."""
    jobs = [row(f"job-{n}", NOON - HOUR + n * MINUTE) for n in range(6)]
    office = an_office(*jobs)
    office.history.audited(*jobs[1:])
    office.pages.size = 2
    office.pages.spoils = lambda of, n, page: (
        [one for one in page if one is not jobs[0]] if of == TRAINING and n == 3 else page
    )
    parts = office.sweep()
    office.pages.spoils = lambda _of, _number, page: page
    office.now += QUARTER
    parts += office.sweep()
    assert office.queue.names == ["job-0"]
    return _counts(parts)


def _ends_meanwhile() -> Counter[str]:
    office = an_office()
    office.sweep()
    job = row("meanwhile", office.pages.asked[0][0] + MINUTE / 30)
    office.pages.rows.append(job)
    office.now += 10 * MINUTE
    office.history.audited(job)
    return _sweeps(office, 3)


def _long_job() -> Counter[str]:
    """While it runs, lists begin at its creation; afterwards they do not."""
    office = Office(NOON - 30 * DAY)
    office.sweep()
    office.pages.rows.append(row("long", NOON, lasts=20 * DAY))
    for days in range(29, 0, -2):
        office.now = NOON - days * DAY
        office.sweep()
    office.now = NOON
    counts = _sweeps(office, 2)
    assert office.notes.states[TRAINING].listed_from > NOON - 2 * HOUR
    return counts


def _one_account_denied() -> Counter[str]:
    accounts = (ACCOUNT, *OTHERS)
    jobs = [row("lost", NOON - HOUR, account=account) for account in accounts]
    office = an_office(*jobs, accounts=accounts)
    denied = ListOfJobs(OTHERS[0], REGION, JobKind.TRAINING)
    office.pages.spoils = refuses(denied, AccessDenied("sagemaker:ListTrainingJobs", "denied"))
    parts = office.sweep()
    [refused] = [part for part in parts if isinstance(part, Swept) and part.of == denied]
    assert (refused.ended, refused.missing) == (0, 0)
    assert [body["account"] for body in office.queue.bodies] == [ACCOUNT, OTHERS[1]]
    return _counts(parts)


def _audit_is_broken() -> Counter[str]:
    office = an_office(*(row(f"job-{n}", NOON + n * MINUTE / 10) for n in range(40)))
    return _sweeps(office, 1, audits=False)


STORIES: dict[str, Story] = {
    "A07": _lost,
    "A08": _lost,
    "A09": lambda: _on_its_way(2),
    "A10": lambda: _on_its_way(22),
    "A11": _slow_audit,
    "A50": lambda: _sweeps(an_office(row("again", NOON + HOUR)), 3),
    "A62": _many_due,
    "A90": _first_install,
    "A91": _across_the_install,
    "A92": lambda: _stopped(3),
    "A93": lambda: _stopped(72, 40 * 24),
    "A94": _backlog,
    "A95": _future_watermark,
    "A96": _clock_is_wrong,
    "A97": _third_page_fails,
    "A98": _endless,
    "A99": _empty_page,
    "A100": _rows_move,
    "A101": _ends_meanwhile,
    "A102": _long_job,
    "A103": _one_account_denied,
    "A106": _audit_is_broken,
    "A107": lambda: _sweeps(an_office(), 48),
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
