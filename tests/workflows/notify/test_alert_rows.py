"""Which messages a family gets: 104 scenarios, written from the facts before the rule was.

A row has the messages before, an audit, and what is expected of it. Rows that are a story of
several audits have a function of their own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from sageaudit.domain.alert.rule import Quiet
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
        STORIES[row["id"]](story, row["event"])
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


def _thousand_runs(story: FamilyStory, event: Event) -> None:
    for dollars in range(5, 1005):
        name = f"train-bert-{dollars:04d}"
        story.audited(run_document(name, avoidable=str(dollars)), MORNING)
    figures = [one.first_line.split("all of ")[1].split(" ")[0] for one in story.messages]
    assert figures == ["$5.00", "$50.00", "$500.00"]


def _random_runs(story: FamilyStory, event: Event) -> None:
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


def _two_at_once(story: FamilyStory, event: Event) -> None:
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


def _drift(story: FamilyStory, event: Event) -> None:
    dollars = Decimal(412)
    story.audited(run_document(avoidable="412", severity="high"), clock("09:02"))
    story.messages.clear()
    for version in range(2, 7):
        dollars *= Decimal("1.04")
        whole = run_document(avoidable=str(dollars), severity="high")
        story.audited(whole, clock("09:40") + timedelta(minutes=version), version=version)
    assert len(story.messages) == 1


def _same_version(story: FamilyStory, event: Event) -> None:
    whole = run_document(avoidable="412", severity="high")
    story.audited(whole, clock("09:02"))
    story.messages.clear()
    story.audited(whole, clock("09:02"), now=clock("09:03"))


def _older_after_newer(story: FamilyStory, event: Event) -> None:
    first = story.audit(run_document(avoidable="412", severity="high"), clock("09:02"))
    story.audited(run_document(avoidable="95", severity="high"), clock("09:40"), version=2)
    story.messages.clear()
    story.decided(first, clock("09:41"))


def _second_before_first(story: FamilyStory, event: Event) -> None:
    first = story.audit(run_document(avoidable="412", severity="high"), clock("09:02"))
    story.audited(run_document(avoidable="412", severity="high"), clock("09:40"), version=2)
    story.decided(first, clock("09:50"))
    assert len(story.messages) == 1


def _overtaken(story: FamilyStory, event: Event) -> None:
    first = story.audit(run_document(avoidable="412", severity="high"), clock("09:02"))
    story.audited(run_document(severity="info"), clock("09:40"), version=2)
    story.decided(first, clock("09:45"))


def _after_midnight(story: FamilyStory, event: Event) -> None:
    late = "yesterday 23:59:59" if "23:59" in event["family_told"] else "yesterday 09:00"
    story.audited(run_document(OTHER, avoidable="6"), clock(late))
    story.messages.clear()
    story.audited(run_document(avoidable="6"), clock(event["at"]))


def _audited_late(story: FamilyStory, event: Event) -> None:
    story.audited(run_document(OTHER, avoidable="6"), clock("00:30"))
    story.messages.clear()
    ended = clock("yesterday 14:00")
    story.audited(run_document(avoidable="6", ended_at=ended), clock("00:40"))


def _repeated_over_midnight(story: FamilyStory, event: Event) -> None:
    audit = story.audit(run_document(avoidable="6"), clock("yesterday 23:59"))
    story.slack.answers.append(Throttled("queue"))
    story.decided(audit, clock("yesterday 23:59"))
    story.decided(audit, clock("00:01"))
    assert len(story.notice_ids()) == 2


def _muted(story: FamilyStory, event: Event) -> None:
    story.audited(run_document(exempt="60"), MORNING)


def _second_under_floor(story: FamilyStory, event: Event) -> None:
    story.policy = Policy(floor_usd=Decimal(100))
    story.audited(run_document(OTHER, avoidable="60"), clock("09:00"))
    assert not story.messages
    story.audited(run_document(avoidable="150"), clock("09:20"))


def _exemption_added(story: FamilyStory, event: Event) -> None:
    story.audited(run_document(avoidable="412", severity="high"), clock("09:02"))
    story.messages.clear()
    story.audited(run_document(exempt="412"), clock("11:00"), version=2)


def _observed(story: FamilyStory, event: Event) -> None:
    story.policy = Policy(mode="observe")
    story.audited(run_document(OTHER, avoidable="5000", severity="high"), MORNING)
    assert not story.messages
    if "switched off" in event["what"]:
        story.policy = Policy()
        story.audited(run_document(avoidable="6"), clock("12:10"))
        assert "message 2" not in story.messages[0].first_line


def _around_the_installation(story: FamilyStory, event: Event) -> None:
    story.installed_at = clock("12:00")
    before_s = {"first install": -3 * 3600, "job started": 1, "later version": -60}
    seconds = next(s for what, s in before_s.items() if event["what"].startswith(what))
    ended = story.installed_at + timedelta(seconds=seconds)
    whole = run_document(avoidable=event["certain_usd"], severity="high", ended_at=ended)
    story.audited(whole, clock("12:10"), version=event.get("version", 1))


def _of_the_past(story: FamilyStory, event: Event) -> None:
    if "INSTALLED not written" not in event["what"]:
        story.installed_at = MORNING
    past = "last month" in event["what"]
    ended = MORNING - (timedelta(days=20) if past else timedelta(minutes=5))
    story.audited(run_document(avoidable="5000", severity="high", ended_at=ended), MORNING)


def _end_of_an_outage(story: FamilyStory, event: Event) -> None:
    for number in range(60):
        ended = MORNING - timedelta(hours=number)
        whole = run_document(f"train-bert-{number:04d}", avoidable="6", ended_at=ended)
        story.audited(whole, MORNING)
    assert len(story.messages) == 1


def _replayed(story: FamilyStory, event: Event) -> None:
    weeks_ago = MORNING - timedelta(days=21)
    first = run_document(avoidable="412", severity="high", ended_at=weeks_ago)
    story.audited(first, weeks_ago)
    story.messages.clear()
    second = run_document(avoidable="95", severity="medium", ended_at=weeks_ago)
    story.audited(second, MORNING, version=2)
    assert "2026-04-29 09:00 UTC" in story.messages[0].text


def _trials(story: FamilyStory, event: Event) -> None:
    for number in range(200):
        name = f"sweep-7-{number:03d}"
        whole = run_document(avoidable="6", severity="low")
        trial = {**whole, "job": job(name=name, parent=TUNING_ARN)}
        story.audited(trial, MORNING)  # type: ignore[arg-type]
    story.history.others_usd = Decimal(1200)
    whole = run_document("sweep-7", avoidable="1200", rollup=True)
    story.audited(whole, MORNING)
    assert len(story.messages) == 1


def _trial_that_failed(story: FamilyStory, event: Event) -> None:
    whole = run_document(lost="5000", severity="high")
    trial = {**whole, "job": job(name="sweep-7-001", parent=TUNING_ARN)}
    story.audited(trial, MORNING)  # type: ignore[arg-type]


def _late_children(story: FamilyStory, event: Event) -> None:
    story.history.others_usd = Decimal(300)
    story.audited(run_document(avoidable="300", severity="high", rollup=True), MORNING)
    story.messages.clear()
    whole = run_document(avoidable="900", severity="high", rollup=True)
    story.audited(whole, clock("12:00"), version=2)


def _one_channel_fails(story: FamilyStory, event: Event) -> None:
    story.sns.answers.append(Throttled("queue"))
    story.audited(run_document(avoidable="6"), MORNING)
    assert [len(queue.sent) for queue in (story.sns, story.slack)] == [0, 1]
    story.hand_on(MORNING + timedelta(minutes=1))
    assert [len(queue.sent) for queue in (story.sns, story.slack)] == [1, 1]


def _queues_away(story: FamilyStory, event: Event) -> None:
    for queue in (story.sns, story.slack):
        queue.answers.append(Throttled("queue"))
    story.audited(run_document(OTHER, avoidable="6"), MORNING)
    assert not story.messages
    assert isinstance(story.audited(run_document(avoidable="6"), clock("10:00")), Quiet)
    assert len(story.messages) == 1


def _failed_before_another(story: FamilyStory, event: Event) -> None:
    first = story.audit(run_document(avoidable="5000", severity="high"), MORNING)
    with patch.object(story.ledger, "write", side_effect=Throttled("table")):
        assert isinstance(story.decided(first, MORNING), Throttled)
    story.audited(run_document(OTHER, avoidable="6"), MORNING + timedelta(minutes=5))
    story.messages.clear()
    story.decided(first, clock("10:05"))
    assert "after LOW $6.00" in story.messages[0].first_line


def _crashed_before_the_alert(story: FamilyStory, event: Event) -> None:
    audit = story.audit(run_document(avoidable="5000", severity="high"), MORNING)
    with (
        patch.object(story.ledger, "write", side_effect=KeyboardInterrupt()),
        pytest.raises(KeyboardInterrupt),
    ):
        story.decided(audit, MORNING)
    story.decided(audit, MORNING + timedelta(minutes=3))
    assert len(story.messages) == 1


def _unauditable(story: FamilyStory, event: Event) -> None:
    story.audited(unauditable_document(), MORNING)


def _unreadable_ledger(story: FamilyStory, event: Event) -> None:
    with patch.object(story.ledger, "past", side_effect=Throttled("table")):
        assert isinstance(story.audited(run_document(avoidable="6"), MORNING), Throttled)


def _reversed_order(story: FamilyStory, event: Event) -> None:
    for number, dollars in enumerate(("600", "60", "6")):
        story.audited(run_document(f"train-bert-{number:04d}", avoidable=dollars), MORNING)
    assert len(story.messages) == 1


def _provisional(story: FamilyStory, event: Event) -> None:
    whole = run_document(avoidable="12", severity="medium")
    due_at = "2026-05-20T15:00:00Z"
    whole["audit"] = {**whole["audit"], "settled": False, "due_at": due_at}
    story.audited(whole, clock("09:02"))
    assert "audited again after 2026-05-20 15:00 UTC" in story.messages[0].text


def _waiting_notice(story: FamilyStory, event: Event) -> None:
    story.audited(run_document(avoidable="412", severity="high"), clock("09:02"))
    story.messages.clear()
    at = MORNING + timedelta(days=1) if event["at"] == "next day" else clock(event["at"])
    story.audited(run_document(severity="info"), at, version=2)
    assert "the message of 2026-05-20 09:02 UTC, which said HIGH $412.00" in story.messages[0].text


STORIES: dict[str, Callable[[FamilyStory, Event], None]] = {
    "T29": _thousand_runs,
    "T30": _random_runs,
    "T31": _two_at_once,
    "T48": _drift,
    "T53": _provisional,
    "T56": _same_version,
    "T57": _older_after_newer,
    "T58": _second_before_first,
    "T59": _overtaken,
    "T60": _after_midnight,
    "T61": _after_midnight,
    "T63": _audited_late,
    "T64": _repeated_over_midnight,
    "T65": _muted,
    "T68": _second_under_floor,
    "T71": _exemption_added,
    "T72": _observed,
    "T73": _observed,
    "T74": _around_the_installation,
    "T75": _around_the_installation,
    "T76": _around_the_installation,
    "T78": _end_of_an_outage,
    "T79": _of_the_past,
    "T80": _replayed,
    "T81": _trials,
    "T82": _trial_that_failed,
    "T84": _late_children,
    "T94": _one_channel_fails,
    "T95": _queues_away,
    "T96": _failed_before_another,
    "T97": _crashed_before_the_alert,
    "T98": _waiting_notice,
    "T99": _waiting_notice,
    "T100": _unauditable,
    "T101": _of_the_past,
    "T102": _of_the_past,
    "T103": _unreadable_ledger,
    "T104": _reversed_order,
}


def test_what_was_accepted_before_the_message_hides_no_correction() -> None:
    """Only what was accepted since can be why the figure fell."""
    story = FamilyStory()
    before_usd, now_usd = "412", "95"
    story.audited(run_document(avoidable=before_usd, exempt="500"), clock("09:02"))
    story.messages.clear()
    story.audited(run_document(avoidable=now_usd, exempt="500"), clock("11:00"), version=2)
    assert "$95.00, not $412.00, was avoidable" in story.messages[0].first_line
