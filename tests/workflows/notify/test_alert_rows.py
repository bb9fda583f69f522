"""Which messages a family gets: 104 scenarios, written from the facts before the rule was.

A row has the messages before, an audit, and what is expected of it. Rows that are a story of
several audits have a function of their own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import Throttled
from tests.fakes.documents import TUNING_ARN, job, unauditable_document
from tests.fakes.family import MORNING, FamilyStory, clock, run_document

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "alerts.jsonl").read_text(encoding="utf-8").splitlines()
]
DIFFERS = {
    "T07": "possible dollars are an idea for a trial: they never cause a message (decision 0023)",
    "T82": "a trial is told in its tuning job's message, which has its dollars: else both tell"
    " them",
    "T102": "without the first sweep's item nothing says what is the past: it is told as usual, and"
    " nothing that ended more than 30 days ago",
}
"""Rows in which the product does something else, with the reason."""

Event = dict[str, Any]
Step = Callable[[FamilyStory], Any]
RUN, OTHER = "train-bert-0412", "train-bert-0900"


def outcome(story: FamilyStory) -> str:
    """What the last decision came to, in the words of the rows."""
    if not story.messages:
        return "quiet"
    return "tell as correction" if "Correction:" in story.messages[-1].first_line else "tell"


def outcome_of(row: dict[str, Any]) -> str:
    """Replays the messages before, then the event."""
    story = FamilyStory(policy_of(row["event"]))
    if row["id"] in STORIES:
        for step in STORIES[row["id"]]:
            step(story)
        return outcome(story)
    before(story, row["before"])
    story.messages.clear()
    event = row["event"]
    at = clock(event.get("at", "12:00"))
    own = row["before"]["this_job_last_told"]
    version = event.get("version", 1)
    name = RUN if own or version > 1 else "train-bert-0999"
    story.audited(audited(event, name), at, version=version)
    assert len(story.messages) <= row.get("max_messages", 1)
    return outcome(story)


def before(story: FamilyStory, earlier: dict[str, Any]) -> None:
    """The family's messages of today, those of the run in hand among them."""
    own, today = earlier["this_job_last_told"], earlier["family_told_today"] or []
    own_versions = [one for one in today if own and "job" not in one] or ([own] if own else [])
    others = [one for one in today if one not in own_versions]
    if own and own not in own_versions and own.get("version", 1) > len(own_versions):
        own_versions.append(own)
    for version, one in enumerate(own_versions, start=1):
        story.audited(audited(one, RUN), clock(one["at"]), version=one.get("version", version))
    for number, one in enumerate(others):
        if one.get("as_") == "correction":
            story.audited(audited(one, f"train-bert-{number - 1:04d}"), clock(one["at"]), version=2)
        else:
            story.audited(audited(one, f"train-bert-{number:04d}"), clock(one["at"]))


def audited(event: Event, name: str) -> Any:
    """The audit of a row's event."""
    certain = event.get("certain_usd", "0")
    lost = event.get("bucket") == "lost"
    unit = event.get("unit", "gpu_hours")
    idle = None
    if "idle_hours" in event or "idle_usd" in event:
        usd = event.get("idle_usd")
        idle = {"hours": event.get("idle_hours", "400"), "unit": unit, "usd": usd}
    return run_document(
        name,
        severity=event.get("severity") or "low",
        avoidable=None if certain is None else ("0" if lost else certain),
        lost=None if certain is None else (certain if lost else "0"),
        possible=event.get("possible_usd", "0"),
        exempt=event.get("exempt_usd"),
        idle=idle,
        whole="100000" if certain is not None else None,
    )


def policy_of(event: Event) -> Policy:
    """The floors of a row; where it names none, the defaults and 8 idle hours."""
    hours = Decimal(event.get("idle_floor_hours", "8"))
    return Policy(
        floor_usd=Decimal(event.get("floor_usd", "5")),
        idle_floor_gpu_hours=hours,
        idle_floor_vcpu_hours=hours,
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_row_comes_out_as_it_says(row: dict[str, Any]) -> None:
    """Or differs for a reason that is written down."""
    same = outcome_of(row) == row["expected"]
    assert same is (row["id"] not in DIFFERS), row["reason"]


# ---- rows that are stories


def run(
    at: str | datetime,
    usd: str = "6",
    name: str = RUN,
    *,
    version: int = 1,
    now: str | None = None,
    **figures: Any,
) -> Step:
    """An audit that is written at a moment and decided about, then or later."""

    def step(story: FamilyStory) -> None:
        moment = clock(at) if isinstance(at, str) else at
        whole = run_document(name, avoidable=usd, **figures)
        story.audited(whole, moment, version=version, now=clock(now) if now else None)

    return step


def high(at: str | datetime, usd: str, **more: Any) -> Step:
    """A finding of that severity."""
    return run(at, usd, severity="high", **more)


def written(story: FamilyStory) -> None:
    """The run's first audit, which is not decided about yet."""
    story.audit(run_document(avoidable="412", severity="high"), clock("09:02"))


def anew(story: FamilyStory) -> None:
    """Only what is sent from here on counts."""
    story.messages.clear()


def sent(messages: int) -> Step:
    """So many, since."""

    def step(story: FamilyStory) -> None:
        assert len(story.messages) == messages

    return step


def says(text: str) -> Step:
    """The first message does."""

    def step(story: FamilyStory) -> None:
        assert text in story.messages[0].text

    return step


def with_(**changes: Any) -> Step:
    """Another policy, or another moment of installation."""

    def step(story: FamilyStory) -> None:
        for name, value in changes.items():
            setattr(story, name, value)

    return step


def _others(usd: str) -> Step:
    return lambda story: setattr(story.history, "others_usd", Decimal(usd))


def _fails(*queues: str) -> Step:
    """Its next request."""

    def step(story: FamilyStory) -> None:
        for queue in queues:
            story.queues[queue].answers.append(Throttled("queue"))

    return step


def _thousand_runs(story: FamilyStory) -> None:
    for dollars in range(5, 1005):
        name = f"train-bert-{dollars:04d}"
        story.audited(run_document(name, avoidable=str(dollars)), MORNING)
    figures = [one.first_line.split("all of ")[1].split(" ")[0] for one in story.messages]
    assert figures == ["$5.00", "$50.00", "$500.00"]


def _random_runs(story: FamilyStory) -> None:
    for day in range(20):
        chance = random.Random(day)
        story.messages.clear()
        for number in range(200):
            dollars = Decimal(chance.randrange(10_000_000)) / 100
            severity = chance.choice(list(Severity)).value
            name = f"train-bert-{day:02d}{number:03d}"
            whole = run_document(name, severity=severity, avoidable=str(dollars))
            story.audited(whole, MORNING + timedelta(days=day))
        assert 1 <= len(story.messages) <= 8


def _two_at_once(story: FamilyStory) -> None:
    story.audited(run_document(OTHER, avoidable="6"), clock("09:00"))
    story.messages.clear()
    one, two = (
        story.audit(run_document(name, severity="high", avoidable="5000"), clock("09:10"))
        for name in ("train-bert-0001", "train-bert-0002")
    )
    seen: list[bool] = []
    write = story.ledger.write

    def racing(*args: Any) -> bool:
        if not seen:
            seen.append(True)
            story.decided(two, clock("09:10"))
        return bool(write(*args))

    story.ledger.write = racing
    story.decided(one, clock("09:10"))
    assert len(story.messages) == 1


def _drift(story: FamilyStory) -> None:
    dollars = Decimal(412)
    story.audited(run_document(avoidable="412", severity="high"), clock("09:02"))
    story.messages.clear()
    for version in range(2, 7):
        dollars *= Decimal("1.04")
        whole = run_document(avoidable=str(dollars), severity="high")
        story.audited(whole, clock("09:40") + timedelta(minutes=version), version=version)
    assert len(story.messages) == 1


def _both_queued(story: FamilyStory) -> None:
    assert len(story.notice_ids()) == 2


def _end_of_an_outage(story: FamilyStory) -> None:
    for number in range(60):
        ended = MORNING - timedelta(hours=number)
        whole = run_document(f"train-bert-{number:04d}", avoidable="6", ended_at=ended)
        story.audited(whole, MORNING)
    assert len(story.messages) == 1


def _trials(story: FamilyStory) -> None:
    for number in range(200):
        name = f"sweep-7-{number:03d}"
        whole = run_document(avoidable="6", severity="low")
        trial = {**whole, "job": job(name=name, parent=TUNING_ARN)}
        story.audited(trial, MORNING)  # type: ignore[arg-type]
    story.history.others_usd = Decimal(1200)
    whole = run_document("sweep-7", avoidable="1200", rollup=True)
    story.audited(whole, MORNING)
    assert len(story.messages) == 1


def _trial_that_failed(story: FamilyStory) -> None:
    whole = run_document(lost="5000", severity="high")
    trial = {**whole, "job": job(name="sweep-7-001", parent=TUNING_ARN)}
    story.audited(trial, MORNING)  # type: ignore[arg-type]


def _one_channel_fails(story: FamilyStory) -> None:
    story.sns.answers.append(Throttled("queue"))
    story.audited(run_document(avoidable="6"), MORNING)
    assert [len(queue.sent) for queue in (story.sns, story.slack)] == [0, 1]
    story.hand_on(MORNING + timedelta(minutes=1))
    assert [len(queue.sent) for queue in (story.sns, story.slack)] == [1, 1]


def _failed_before_another(story: FamilyStory) -> None:
    first = story.audit(run_document(avoidable="5000", severity="high"), MORNING)
    with patch.object(story.ledger, "write", side_effect=Throttled("table")):
        assert isinstance(story.decided(first, MORNING), Throttled)
    story.audited(run_document(OTHER, avoidable="6"), MORNING + timedelta(minutes=5))
    story.messages.clear()
    story.decided(first, clock("10:05"))
    assert "after LOW $6.00" in story.messages[0].first_line


def _crashed_before_the_alert(story: FamilyStory) -> None:
    audit = story.audit(run_document(avoidable="5000", severity="high"), MORNING)
    with (
        patch.object(story.ledger, "write", side_effect=KeyboardInterrupt()),
        pytest.raises(KeyboardInterrupt),
    ):
        story.decided(audit, MORNING)
    story.decided(audit, MORNING + timedelta(minutes=3))
    assert len(story.messages) == 1


def _unreadable_ledger(story: FamilyStory) -> None:
    with patch.object(story.ledger, "past", side_effect=Throttled("table")):
        assert isinstance(story.audited(run_document(avoidable="6"), MORNING), Throttled)


def _provisional(story: FamilyStory) -> None:
    whole = run_document(avoidable="12", severity="medium")
    due_at = "2026-05-20T15:00:00Z"
    whole["audit"] = {**whole["audit"], "settled": False, "due_at": due_at}
    story.audited(whole, clock("09:02"))


FIRST = high("09:02", "412")
SAID_412 = says("the message of 2026-05-20 09:02 UTC, which said HIGH $412.00")
OBSERVED = [with_(policy=Policy(mode="observe")), high("09:00", "5000", name=OTHER), sent(0)]
WEEKS_AGO = MORNING - timedelta(days=21)
LAST_MONTH = high("09:00", "5000", ended_at=MORNING - timedelta(days=20))
STORIES: dict[str, list[Step]] = {
    "T29": [_thousand_runs],
    "T30": [_random_runs],
    "T31": [_two_at_once],
    "T48": [_drift],
    "T53": [_provisional, says("audited again after 2026-05-20 15:00 UTC")],
    "T56": [FIRST, anew, high("09:02", "412", now="09:03")],
    "T57": [written, high("09:40", "95", version=2), anew, high("09:02", "412", now="09:41")],
    "T58": [written, high("09:40", "412", version=2), high("09:02", "412", now="09:50"), sent(1)],
    "T59": [
        *(written, run("09:40", "0", severity="info", version=2)),
        high("09:02", "412", now="09:45"),
    ],
    "T60": [run("yesterday 09:00", name=OTHER), anew, run("09:00")],
    "T61": [run("yesterday 23:59:59", name=OTHER), anew, run("00:00:00")],
    "T63": [run("00:30", name=OTHER), anew, run("00:40", ended_at=clock("yesterday 14:00"))],
    "T64": [
        *(_fails("slack"), run("yesterday 23:59"), run("yesterday 23:59", now="00:01")),
        _both_queued,
    ],
    "T65": [run("09:00", "0", exempt="60")],
    "T68": [
        *(with_(policy=Policy(floor_usd=Decimal(100))), run("09:00", "60", OTHER), sent(0)),
        run("09:20", "150"),
    ],
    "T71": [FIRST, anew, run("11:00", "0", exempt="412", version=2)],
    "T72": OBSERVED,
    "T73": [
        *OBSERVED,
        with_(policy=Policy()),
        run("12:10"),
        says(f"LOW  all of $6.00 was avoidable - {RUN}\n"),
    ],
    "T74": [with_(installed_at=clock("12:00")), high("12:10", "5000", ended_at=clock("09:00"))],
    "T75": [with_(installed_at=clock("12:00")), high("12:10", "60", ended_at=clock("12:00:01"))],
    "T76": [
        with_(installed_at=clock("12:00")),
        high("12:10", "90", ended_at=clock("11:59"), version=2),
    ],
    "T78": [_end_of_an_outage],
    "T79": [with_(installed_at=MORNING), LAST_MONTH],
    "T80": [
        *(high(WEEKS_AGO, "412", ended_at=WEEKS_AGO), anew),
        run("09:00", "95", severity="medium", ended_at=WEEKS_AGO, version=2),
        says("2026-04-29 09:00 UTC"),
    ],
    "T81": [_trials],
    "T82": [_trial_that_failed],
    "T84": [
        *(_others("300"), high("09:00", "300", rollup=True), anew),
        high("12:00", "900", rollup=True, version=2),
    ],
    "T94": [_one_channel_fails],
    "T95": [_fails("sns", "slack"), run("09:00", name=OTHER), sent(0), run("10:00"), sent(1)],
    "T96": [_failed_before_another],
    "T97": [_crashed_before_the_alert],
    "T98": [FIRST, anew, run("09:03", "0", severity="info", version=2), SAID_412],
    "T99": [
        *(FIRST, anew),
        *(run(MORNING + timedelta(days=1), "0", severity="info", version=2), SAID_412),
    ],
    "T100": [lambda story: story.audited(unauditable_document(), MORNING)],
    "T101": [with_(installed_at=None), high("09:00", "5000", ended_at=clock("08:55"))],
    "T102": [LAST_MONTH],
    "T103": [_unreadable_ledger],
    "T104": [
        *(run("09:00", usd, f"train-bert-{usd:>04}") for usd in ("600", "60", "6")),
        sent(1),
    ],
}


def test_what_was_accepted_before_the_message_hides_no_correction() -> None:
    """Only what was accepted since can be why the figure fell."""
    story = FamilyStory()
    before_usd, now_usd = "412", "95"
    story.audited(run_document(avoidable=before_usd, exempt="500"), clock("09:02"))
    story.messages.clear()
    story.audited(run_document(avoidable=now_usd, exempt="500"), clock("11:00"), version=2)
    assert "LOW $95.00; was LOW $412.00" in story.messages[0].first_line
