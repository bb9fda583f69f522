"""From an audit to its alert and notices, and what stays quiet."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from unittest.mock import patch

import pytest

from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.lambda_runtime.records import parse_version
from sageaudit.domain.advice.advice import Decision, DecisionAction
from sageaudit.domain.alert.alert import AlertKind, FollowUpReason, no_alert
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.money import format_usd
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import ChannelConfig, Route, Routes
from sageaudit.errors import MalformedData
from sageaudit.structs import replace
from sageaudit.workflows.notify import NotifyDependencies, notify
from tests.fakes.calls import NOON
from tests.fakes.documents import document, finding, job
from tests.fakes.family import (
    FamilyStory,
    WrittenAudit,
    is_first_alert,
    is_sent,
    is_suppressed,
    run_document,
)
from tests.fakes.lambda_events import PK
from tests.fakes.sample_documents import (
    lost_document,
    possibly_lost_document,
    rollup_document,
    unauditable_document,
)

OTHER = PK.replace("0412", "0413")
FAMILY = "111122223333/us-east-1/train-bert"
ONE = document()
KEY, _ = parse_version(PK, "AUDIT#00001")
NOTHING = document(findings=[], avoidable_usd=Decimal(0))
DEARER = document(avoidable_usd=Decimal("9.04"))


def named(name: str, *, ended_at: datetime = NOON, **changes: Any) -> AuditDocument:
    """The audit of $2.04 avoidable of another run."""
    end = ended_at.isoformat().replace("+00:00", "Z")
    return document(job=job(name=name, ended_at=end), **changes)


@pytest.fixture
def story() -> FamilyStory:
    """A floor of $2, so that an audit of $2.04 alone is worth a message."""
    return FamilyStory(Policy(floor_usd=Decimal(2)))


def args(audit: WrittenAudit) -> tuple[JobKey, int, AuditDocument]:
    """What `notify` is called with."""
    return audit.key, audit.version, audit.document


def bodies(story: FamilyStory) -> list[dict[str, Any]]:
    """The notices, in the order in which they were written."""
    return [json.loads(body) for _, body in story.ledger.notices.values()]


def test_one_notice_a_channel_is_written_with_its_alert(story: FamilyStory) -> None:
    """With an id that no other audit, version or channel has."""
    story.policy = replace(story.policy, mentions={"anna": "U0123456789"})
    assert is_first_alert(story.write_and_decide(ONE, NOON))
    sns, slack = bodies(story)
    assert (sns["schema"], sns["channel"], sns["notice_id"]) == (1, "sns", f"{PK}|1|sns")
    assert (slack["schema"], slack["channel"], slack["notice_id"]) == (1, "slack", f"{PK}|1|slack")
    assert sns["payload"]["subject"].startswith("train-bert wasted about $2.00 in 1 run")
    assert "<@U0123456789>" in str(slack)
    assert all(body.isascii() for _, body in story.ledger.notices.values())
    assert set(story.ledger.notices) == {
        (f"ALERT#{PK}", "NOTICE#00001#sns"),
        (f"ALERT#{PK}", "NOTICE#00001#slack"),
    }


def test_only_the_channels_of_the_policy_are_written_for(story: FamilyStory) -> None:
    """Slack is optional."""
    deps = replace(story.dependencies(), policy=Policy(floor_usd=Decimal(1)))
    notification = notify(*args(story.audit(ONE, NOON)), deps, now=NOON)
    assert is_first_alert(notification.alert_decision)
    assert [body["channel"] for body in bodies(story)] == ["sns"]


@pytest.mark.parametrize(
    ("quiet", "policy", "reason"),
    [
        (ONE, Policy(mode="observe"), "observe mode"),
        (unauditable_document(), Policy(), "unauditable"),
        (document(findings=[]), Policy(), "no finding worth a message"),
    ],
)
def test_what_can_never_be_worth_a_message_asks_nobody(
    quiet: AuditDocument, policy: Policy, reason: str
) -> None:
    """Neither the history nor the ledger: most audits are of this kind."""
    story = FamilyStory(policy)
    audit = story.audit(quiet, NOON)
    with (
        patch.object(story.history, "summary", side_effect=AssertionError),
        patch.object(story.ledger, "past_alerts", side_effect=AssertionError),
    ):
        assert story.decide(audit, NOON) == no_alert(reason)


OWN = finding("trials-fail", id="SA901", saving_usd=Decimal("0.50"))
ROLLUP = rollup_document()
WITH_OWN: Any = {**ROLLUP, "rollup_rules": ["trials-fail"], "findings": [*ROLLUP["findings"], OWN]}


@pytest.mark.parametrize(
    ("whole", "others", "floor", "enough"),
    [
        (ONE, "0", "2.035", True),  # exactly the floor
        (ONE, "2.95", "5", False),
        (ONE, "2.97", "5", True),  # its runs add up
        (lost_document(), "0", "2", True),  # lost dollars count as well
        (possibly_lost_document(), "0", "4.5", True),  # $4.55 at its upper end
        (possibly_lost_document(), "0", "5", False),
        (ROLLUP, "0", "3.80", True),  # its dollars are its children's
        (ROLLUP, "0", "3.81", False),
        (WITH_OWN, "0", "4.30", True),  # and what it found itself
        (WITH_OWN, "0", "4.31", False),
    ],
)
def test_a_family_gets_a_message_once_its_30_days_reach_the_floor(
    whole: AuditDocument, others: str, floor: str, enough: bool
) -> None:
    """With this run, and with what may be lost; a family's name is not that of another place."""
    story = FamilyStory(Policy(floor_usd=Decimal(floor)))
    elsewhere = named("train-bert-0411", avoidable_usd=Decimal(900))
    elsewhere["job"]["region"] = "eu-west-1"
    story.audit(elsewhere, NOON)
    story.audit(run_document("train-bert-0001", avoidable=others, ended_at=NOON), NOON)
    outcome = story.write_and_decide(whole, NOON + timedelta(hours=1))
    assert is_sent(outcome) if enough else is_suppressed(outcome)
    assert enough or f"below the ${Decimal(floor):,.2f} floor" in str(outcome)


def test_a_message_names_the_month_the_advice_and_what_is_new() -> None:
    """For whoever lays it out: of runs that are read together, in one answer."""
    story = FamilyStory(Policy(floor_usd=Decimal(5)))
    for number in range(3):
        ended = NOON - timedelta(days=3 - number)
        story.audit(named(f"train-bert-{number:04d}", ended_at=ended), NOON)
    first = story.write_and_decide(document(job=job(ended_at="2026-05-20T13:00:00Z")), NOON)
    assert is_sent(first)
    assert first.month is not None
    assert (first.month.total, first.month.runs) == (Decimal("8.14"), 4)
    assert (round(first.month.projected), first.month.severity) == (61, Severity.LOW)
    assert first.recommendation is not None
    assert (first.recommendation.rule, first.recommendation.runs) == ("gpu-underused", 4)
    assert f"snooze {first.recommendation.id}\n" in story.messages[0].text


def step_document(step: str, name: str, at: datetime, usd: str = "9") -> AuditDocument:
    """A run of a step of the pipeline `nightly`."""
    whole = run_document(f"{step}-{name}", avoidable=usd, ended_at=at, whole="1000")
    whole["job"]["family"] = f"pipeline/nightly/{step}"
    return whole


def test_the_ten_steps_of_a_pipeline_are_one_subject(story: FamilyStory) -> None:
    """Its first message names the step that is known, its second one all; then it says no more,
    until the pipeline is ten times as expensive.
    """

    def weekly(week: int, usd: str = "9") -> None:
        for step in range(10):
            at = NOON + timedelta(days=7 * week, minutes=5 * step)
            story.write_and_decide(step_document(f"step-{step}", str(week), at, usd), at)

    weekly(0)
    assert [message.subject.partition(" wasted")[0] for message in story.messages] == ["nightly"]
    assert "Step: step-0" in story.messages[0].text
    assert "Other steps" not in story.messages[0].text
    weekly(1)
    assert len(story.messages) == 2
    text = re.sub(r"\s+", " ", story.messages[1].text)
    assert text.startswith("nightly will waste ")
    assert "Step: step-1" in text
    steps = r"step-0 about \$39; step-\d about \$9.00; and 7 more"
    assert re.search(f"Other steps, a month: {steps}", text)
    weekly(2)
    assert len(story.messages) == 2
    weekly(3, "900")
    assert len(story.messages) == 3


def test_a_pipeline_has_a_message_once_its_steps_reach_the_floor_together() -> None:
    """No step does alone; a run of another pipeline counts for nothing."""
    story = FamilyStory(Policy(floor_usd=Decimal(10)))
    other = step_document("other", "1", NOON)
    other["job"]["family"] = "pipeline/hourly/other"
    assert is_suppressed(story.write_and_decide(other, NOON))
    assert is_suppressed(story.write_and_decide(step_document("features", "1", NOON, "6"), NOON))
    sent = story.write_and_decide(step_document("train", "1", NOON, "6"), NOON)
    assert is_sent(sent)
    assert [name for name, _ in sent.other_steps] == ["pipeline/nightly/features"]
    assert sent.month is not None
    assert sent.month.total == 12


def test_a_correction_goes_to_the_channels_of_its_message(story: FamilyStory) -> None:
    """Whatever the routes say of it then."""
    story.policy = replace(
        story.policy,
        routes=Routes(("slack",), (Route(min_usd_per_month=Decimal(20), channels=("sns",)),)),
        channels={"sns": ChannelConfig("sns"), "slack": ChannelConfig("slack", "s")},
    )
    for version, dollars in ((1, "30"), (2, "9")):
        assert is_sent(
            story.write_and_decide(step_document("a", "1", NOON, dollars), NOON, version=version)
        )
        assert story.notification
        assert story.notification.alert
        assert story.notification.alert.destination.channels == ("sns",)


def test_what_people_decide_is_seen_at_once(story: FamilyStory) -> None:
    """An advice that somebody snoozed is left out of a message, and of its sums."""
    first = story.write_and_decide(ONE, NOON)
    assert is_sent(first)
    assert first.recommendation is not None
    last = NOON.date() + timedelta(days=30)
    decision = Decision(first.recommendation.id, DecisionAction.SNOOZE, "ana", NOON, last)
    story.decisions.save_decision(decision)
    later = NOON + timedelta(days=10)
    quiet = story.write_and_decide(named("train-bert-0413", ended_at=later), later)
    assert quiet == no_alert("the family's $1.01 in the last 30 days is below the $2.00 floor")
    much = finding("gpu-idle", saving_usd=Decimal(40), fix=[])
    whole = named("train-bert-0414", ended_at=later, findings=[*ONE["findings"], much])
    whole["avoidable_usd"] = Decimal("42.04")
    outcome = story.write_and_decide(whole, later)
    assert is_sent(outcome)
    assert (outcome.kind, outcome.follow_up_reason) == (
        AlertKind.FOLLOW_UP,
        FollowUpReason.OTHER_ADVICE,
    )
    assert "$42.04" not in story.messages[-1].text
    assert f"snooze {first.recommendation.id} " not in story.messages[-1].text
    story.decisions.save_decision(replace(decision, action=DecisionAction.EXEMPT, at=later))
    outcome = story.write_and_decide(named("train-bert-0415", ended_at=later), later)
    assert is_suppressed(outcome)


@pytest.mark.parametrize(
    ("ended_at", "enough"), [("2026-04-20T13:10:00Z", False), ("2026-04-20T13:10:01Z", True)]
)
def test_a_run_that_ended_30_days_ago_is_no_longer_told(
    story: FamilyStory, ended_at: str, enough: bool
) -> None:
    """A backfill sends no message for each old job."""
    outcome = story.write_and_decide(document(job=job(ended_at=ended_at)), NOON)
    assert is_sent(outcome) is enough


def test_another_run_with_the_same_advice_is_nothing_new(story: FamilyStory) -> None:
    """On no day; another account is another family."""
    story.write_and_decide(ONE, NOON)
    quiet = no_alert("the family already had a message about this, and nothing is new")
    assert story.write_and_decide(named("train-bert-0413"), NOON) == quiet
    assert story.write_and_decide(named("train-bert-0414"), NOON + timedelta(days=1)) == quiet
    abroad = document(job=job(name="train-bert-0415", account="444455556666"))
    assert is_first_alert(story.write_and_decide(abroad, NOON))


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"job": None},
        {"findings": [{}]},
        {"findings": 7},
        {"avoidable_usd": "much"},
        {"job": {**job(), "ended_at": "yesterday"}, "bill": {}},
    ],
)
def test_a_document_that_cannot_be_read_is_malformed_and_nothing_is_written(
    story: FamilyStory, broken: dict[str, Any]
) -> None:
    """The family's message is left to the next audit."""
    audit = story.audit(ONE, NOON)
    whole: Any = broken and {**document(), **broken}
    with pytest.raises(MalformedData, match="document cannot be read"):
        story.decide(replace(audit, document=whole), NOON)
    assert not story.ledger.notices
    assert is_first_alert(story.decide(audit, NOON))


def failing(story: FamilyStory, error: Exception) -> NotifyDependencies:
    """A writer of Slack's that raises."""

    def raises(*_: Any) -> Any:
        raise error

    deps = story.dependencies()
    return replace(deps, writers={**deps.writers, "slack": raises})


@pytest.mark.parametrize("defect", [KeyError("x"), ValueError("x"), ZeroDivisionError("x")])
def test_a_writer_that_fails_leaves_nothing_written(story: FamilyStory, defect: Exception) -> None:
    """Its error is named; once it is mended, the notices are written."""
    audit = story.audit(ONE, NOON)
    with pytest.raises(MalformedData, match=f"document cannot be read: {type(defect).__name__}"):
        notify(*args(audit), failing(story, defect), now=NOON)
    assert not story.ledger.notices
    assert is_first_alert(story.decide(audit, NOON))


@pytest.mark.parametrize("error", [KeyError("x"), InvalidOperation("x")])
@pytest.mark.parametrize(
    ("method", "what"), [("summary", "summary of the run"), ("runs", "runs of the family")]
)
def test_what_is_stored_of_the_family_and_cannot_be_read_is_malformed(
    error: Exception, method: str, what: str
) -> None:
    """No later try would read it: its keys and the reason are kept for somebody to look at."""
    story = FamilyStory()
    audit = story.audit(ONE, NOON)
    with (
        patch.object(story.history, method, side_effect=error),
        pytest.raises(MalformedData, match=f"{what} cannot be read"),
    ):
        story.decide(audit, NOON)


def test_a_later_version_with_the_same_figures_is_not_sent_again(story: FamilyStory) -> None:
    """A second audit that only settles it, or moves part of a cent, needs none on any day."""
    story.write_and_decide(ONE, NOON)
    settled = document(avoidable_usd=Decimal("2.0351"), possible_usd=Decimal(3))
    for number, days in ((2, 1), (3, 60)):
        assert story.write_and_decide(
            settled, NOON + timedelta(days=days), version=number
        ) == no_alert("version 1 was sent, and what changed since does not matter")
    assert len(story.ledger.past_alerts(KEY, FAMILY).subject_alerts) == 1


def test_a_later_version_corrects_the_last_message(story: FamilyStory) -> None:
    """Compared with what was sent last: back to the first figures is a change as well."""
    for number, figures in ((1, ONE), (2, DEARER), (3, ONE)):
        at = NOON + timedelta(days=number)
        assert is_sent(story.write_and_decide(figures, at, version=number))
    assert is_suppressed(story.write_and_decide(ONE, NOON + timedelta(days=4), version=4))
    assert [message.subject for message in story.messages[1:]] == [
        "Correction: train-bert wasted $9.04, not $2.04 as reported",
        "Correction: train-bert wasted $2.04, not $9.04 as reported",
    ]


@pytest.mark.parametrize(("first", "says"), [(ONE, True), ({"bill": 7}, False), (None, False)])
def test_a_correction_says_why_the_figure_changed(
    story: FamilyStory, first: Any, says: bool
) -> None:
    """By the version of the last message; where that cannot be read, it is sent without."""
    cheaper = document(
        findings=[finding("gpu-underused", saving_usd=Decimal("0.53"))], avoidable_usd=Decimal(1)
    )
    story.write_and_decide(ONE, NOON)
    with patch.object(story.history, "audit", return_value=first):
        assert is_sent(story.write_and_decide(cheaper, NOON, version=2))
    changed = "What changed: gpu-underused is $0.53, not $1.53"
    assert (changed in story.messages[-1].text) is says


def test_no_message_about_a_job_that_ended_before_the_installation(story: FamilyStory) -> None:
    """It is asked only for audits that may have one; one of the same moment has one."""
    ended = datetime(2026, 5, 20, 13, tzinfo=UTC)
    story.installed_at = ended + timedelta(seconds=1)
    audit = story.audit(ONE, NOON)
    quiet = no_alert("it ended before sageaudit was installed")
    assert story.decide(audit, NOON) == quiet
    story.installed_at = ended
    assert is_first_alert(story.decide(audit, NOON))


def test_a_version_that_a_newer_one_overtook_stays_quiet(story: FamilyStory) -> None:
    """Before the newer one is decided about, and after it; a second delivery too."""
    first, second = story.audit(ONE, NOON), story.audit(DEARER, NOON, version=2)
    overtaken = no_alert("a newer version of the audit has taken its place")
    assert story.decide(first, NOON) == overtaken
    assert is_first_alert(story.decide(second, NOON))
    assert story.decide(first, NOON) == overtaken
    assert story.decide(second, NOON) == no_alert("version 2 was sent")


@pytest.mark.parametrize(
    ("one_unknown", "dollars"),
    [
        ({"avoidable_usd": None, "lost_usd": Decimal("4.55")}, "$4.55"),
        ({"avoidable_usd": Decimal("4.55"), "lost_usd": None}, "$4.55"),
        ({"avoidable_usd": None, "lost_usd": None}, "unknown"),
    ],
)
def test_the_known_figure_beside_an_unknown_one_is_kept(
    story: FamilyStory, one_unknown: Mapping[str, Any], dollars: str
) -> None:
    """Only two unknowns are an unknown figure."""
    story.write_and_decide(document(**one_unknown), NOON)
    last = story.ledger.past_alerts(KEY, FAMILY).last_run_alert
    assert (last.figures.severity, format_usd(last.figures.usd)) == ("high", dollars)


def test_a_later_version_of_a_run_without_a_message_can_get_the_first_one(
    story: FamilyStory,
) -> None:
    """Where the first audit found nothing."""
    assert is_suppressed(story.write_and_decide(NOTHING, NOON))
    assert is_first_alert(story.write_and_decide(ONE, NOON + timedelta(days=1), version=2))


def test_another_run_of_the_same_name_is_another_job(story: FamilyStory) -> None:
    """The name of a deleted job can be used again: nothing of it is corrected."""
    first = story.audit(ONE, NOON)
    story.decide(first, NOON)
    created = first.key.created_at + timedelta(milliseconds=1)
    key = replace(first.key, created_at=created)
    story.history.documents[key, 1] = NOTHING
    rerun = WrittenAudit(key, 1, NOTHING)
    assert story.decide(rerun, NOON) == no_alert("no finding worth a message")


def test_a_document_of_the_table_gives_the_same_notice_as_a_new_one() -> None:
    """Money that went through the table's text is the same money."""
    written = []
    for whole in (ONE, json.loads(to_json(ONE), parse_float=Decimal)):
        story = FamilyStory(Policy(floor_usd=Decimal(2)))
        story.decide(replace(story.audit(ONE, NOON), document=whole), NOON)
        written.append(bodies(story))
    assert written[0] == written[1]
