"""From an audit to its notices: one per family and day, and what stays quiet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sageaudit.adapters.channels.catalogue import CHECKS, writers
from sageaudit.adapters.channels.slack import SlackChannel
from sageaudit.adapters.channels.sns import SnsChannel
from sageaudit.adapters.history.in_memory import MemoryHistory
from sageaudit.adapters.lambda_runtime.stream import Change
from sageaudit.domain.alert.family_day import FamilyDay
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Entry, JobKey
from sageaudit.domain.audit.sums import Scope, SumRow, Sums
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadHistory, Malformed, Throttled
from sageaudit.output.text.envelope import Writer, read_body
from sageaudit.output.text.money import usd
from sageaudit.output.text.slack import HEADER, TEXT, TOTAL, size
from sageaudit.output.text.untrusted import units
from sageaudit.ports import History, Queue
from sageaudit.workflows.notify.decide import (
    LEASE_S,
    Later,
    NewAudit,
    NotifyDependencies,
    Queued,
    Quiet,
    notify,
)
from tests.fakes.delivering import (
    NOON,
    PK,
    RecordingQueue,
    stream_record,
    text_of,
)
from tests.fakes.documents import (
    document,
    job,
    lost_document,
    perhaps_lost_document,
    rollup_document,
    type_finding,
)
from tests.fakes.documents import unauditable_document as unauditable
from tests.fakes.memory_ledger import MemoryLedger

OTHER, THIRD = PK.replace("0412", "0413"), PK.replace("0412", "0414")
FAMILY = "111122223333/us-east-1/train-bert"


@dataclass
class Family:
    """A history that only knows a family's other runs; what it is asked for is remembered."""

    others_usd: Decimal = Decimal(0)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def head(self, key: JobKey) -> None:
        return None

    def audit(self, key: JobKey, version: int | None = None) -> None:
        return None

    def sums(self, scope: Scope, since: date, until: date, **of: Any) -> Iterator[SumRow]:
        self.asked.append({"scope": scope, "since": since, "until": until, **of})
        row = SumRow(scope, of["account"], of["region"], of["name"], until, Sums())
        yield replace(row, sums=Sums(avoidable_usd=self.others_usd))


def audit(changed: AuditDocument | None = None, *, version: int = 1, pk: str = PK) -> NewAudit:
    """A new audit of $2.04 avoidable, written at noon."""
    whole = document() if changed is None else changed
    pk, key, version = Change(stream_record(whole, version=version, pk=pk)).run()
    return NewAudit(pk, key, version, NOON, whole)


def dearer(usd: int) -> AuditDocument:
    """The audit with this avoidable instead."""
    return document(avoidable_usd=Decimal(usd))


def dependencies(
    family: Family | None = None,
    *,
    ledger: Any = None,
    queue: Any = None,
    channels: tuple[str, ...] = ("sns", "slack"),
    policy: Policy | None = None,
    broken: Mapping[str, Writer] | None = None,
) -> NotifyDependencies:
    """A floor of $2, so that the audit alone is worth notifying."""
    return NotifyDependencies(
        history=cast("History", family or Family()),
        ledger=ledger or MemoryLedger(),
        queues=dict.fromkeys(channels, cast("Queue", queue or RecordingQueue())),
        policy=policy or Policy(floor_usd=Decimal(2)),
        writers={**writers(channels), **(broken or {})},
    )


def sent(queue: RecordingQueue) -> list[dict[str, Any]]:
    """The messages on the queue."""
    return [json.loads(body) for body, _ in queue.sent]


def test_one_notice_a_channel_is_queued() -> None:
    """With an id that no other audit, version or channel has."""
    queue = RecordingQueue()
    assert notify(audit(), dependencies(queue=queue), now=NOON) == Queued(("sns", "slack"))
    sns, slack = sent(queue)
    assert (sns["schema"], sns["channel"], sns["notice_id"]) == (1, "sns", f"{PK}|1|sns")
    assert (slack["schema"], slack["channel"], slack["notice_id"]) == (1, "slack", f"{PK}|1|slack")
    assert "$2.04" in sns["payload"]["subject"]
    assert slack["payload"]["blocks"][0]["type"] == "header"
    assert all(body.isascii() for body, _ in queue.sent)


def test_only_the_channels_that_are_set_up_are_written_for() -> None:
    """Slack is optional."""
    queue = RecordingQueue()
    assert notify(audit(), dependencies(queue=queue, channels=("sns",)), now=NOON) == Queued(
        ("sns",)
    )
    assert [message["channel"] for message in sent(queue)] == ["sns"]


def test_an_owner_on_the_policys_list_is_mentioned() -> None:
    """In Slack, by the id that stands there."""
    queue = RecordingQueue()
    policy = Policy(floor_usd=Decimal(2), mentions={"anna": "U0123456789"})
    notify(audit(), dependencies(queue=queue, policy=policy), now=NOON)
    assert "<@U0123456789>" in str(sent(queue)[1])


@pytest.mark.parametrize(
    ("quiet", "policy", "reason"),
    [
        (document(), Policy(mode="observe"), "observe mode"),
        (unauditable(), Policy(), "unauditable"),
        (document(findings=[]), Policy(), "no finding worth a message"),
    ],
)
def test_what_is_not_for_chat_asks_nobody(
    quiet: AuditDocument, policy: Policy, reason: str
) -> None:
    """Neither the history nor the ledger: most audits are of this kind."""
    family, queue = Family(), RecordingQueue()
    outcome = notify(audit(quiet), dependencies(family, queue=queue, policy=policy), now=NOON)
    assert outcome == Quiet(reason)
    assert (family.asked, queue.sent) == ([], [])


def test_what_may_be_lost_counts_for_the_floor_at_its_upper_end() -> None:
    """Its owner can still resume the run: $4.55 reach a floor of $2, and not one of $5."""
    policy = Policy(floor_usd=Decimal(2))
    told = notify(audit(perhaps_lost_document()), dependencies(Family(), policy=policy), now=NOON)
    assert isinstance(told, Queued)
    policy = Policy(floor_usd=Decimal(5))
    quiet = notify(audit(perhaps_lost_document()), dependencies(Family(), policy=policy), now=NOON)
    assert isinstance(quiet, Quiet)


def test_a_family_under_the_floor_stays_quiet_until_its_runs_add_up() -> None:
    """$2.04 of this run and what its others had in 30 days."""
    policy = Policy(floor_usd=Decimal(5))
    family = Family(Decimal("2.95"))
    outcome = notify(audit(), dependencies(family, policy=policy), now=NOON)
    assert isinstance(outcome, Quiet)
    assert "under the floor" in outcome.reason
    family.others_usd = Decimal("2.97")
    assert isinstance(notify(audit(), dependencies(family, policy=policy), now=NOON), Queued)


def test_the_history_is_asked_for_the_familys_last_30_days() -> None:
    """Whole UTC days: the one 30 days ago, and today."""
    family = Family()
    notify(audit(), dependencies(family, policy=Policy(floor_usd=Decimal(5))), now=NOON)
    [asked] = family.asked
    assert asked == {
        "scope": Scope.FAMILY,
        "since": date(2026, 4, 20),
        "until": date(2026, 5, 20),
        "account": "111122223333",
        "region": "us-east-1",
        "name": "train-bert",
    }


def test_an_audit_that_reaches_the_floor_alone_needs_no_history() -> None:
    """Lost dollars count as well."""
    family = Family()
    assert isinstance(notify(audit(lost_document()), dependencies(family), now=NOON), Queued)
    assert family.asked == []


def test_an_audit_of_exactly_the_floor_needs_no_history() -> None:
    """It reaches the floor; nothing is lacking."""
    family, policy = Family(), Policy(floor_usd=Decimal("2.035"))
    assert isinstance(notify(audit(), dependencies(family, policy=policy), now=NOON), Queued)
    assert family.asked == []


def test_an_audit_within_a_dollar_of_the_floor_asks_the_history() -> None:
    """$2.035 and a dollar of the family's other runs reach $2.50."""
    family, policy = Family(Decimal(1)), Policy(floor_usd=Decimal("2.5"))
    assert isinstance(notify(audit(), dependencies(family, policy=policy), now=NOON), Queued)
    assert len(family.asked) == 1


@pytest.mark.parametrize(("floor", "told"), [("3.8", Queued), ("3.81", Quiet)])
def test_a_roll_ups_dollars_are_its_childrens(floor: str, told: type[Queued | Quiet]) -> None:
    """They stand in the family already, each with its own audit, and count once."""
    family, policy = Family(Decimal("3.80")), Policy(floor_usd=Decimal(floor))
    outcome = notify(audit(rollup_document()), dependencies(family, policy=policy), now=NOON)
    assert isinstance(outcome, told)


def test_the_run_in_hand_counts_once_in_the_version_in_hand() -> None:
    """The sums have it already, in its newest version: that is taken out, this one added."""
    history = MemoryHistory()
    first, later = document(), document(avoidable_usd=Decimal(50))
    history.record(_recorded(first))
    history.record(_recorded(document(job=job(name="another"), avoidable_usd=Decimal(1))))
    deps = replace(dependencies(), history=history)

    def reaches(given: NewAudit, floor: str, sums: str) -> bool:
        floor_usd = Decimal(floor)
        policy = Policy(floor_usd=floor_usd)
        outcome = notify(given, replace(deps, policy=policy, ledger=MemoryLedger()), now=NOON)
        if isinstance(outcome, Quiet):
            assert outcome == Quiet(_under(Decimal(sums), floor_usd))
        return isinstance(outcome, Queued)

    one, two = audit(first), audit(later, version=2)
    assert [reaches(one, floor, "3.035") for floor in ("3.035", "3.04")] == [True, False]
    history.record(replace(_recorded(later), last_modified_at=NOON))
    assert [reaches(two, floor, "51") for floor in ("51", "51.01")] == [True, False]


def test_a_run_that_ended_30_days_ago_counts_the_whole_day() -> None:
    """One of the day before does not."""
    policy = Policy(floor_usd=Decimal(3))
    for ended_at, told in (("2026-04-20T00:00:00Z", Queued), ("2026-04-19T23:59:59Z", Quiet)):
        history = MemoryHistory()
        other = document(job=job(name="another", ended_at=ended_at), avoidable_usd=Decimal(1))
        history.record(_recorded(other))
        deps = replace(dependencies(policy=policy), history=history)
        assert isinstance(notify(audit(), deps, now=NOON), told)


def test_a_roll_up_counts_the_findings_of_its_own() -> None:
    """$0.50 that no training job has, beside its children's $3.80."""
    rollup = rollup_document()
    own = type_finding(rule="trials-fail", id="SA901", saving_usd=Decimal("0.50"))
    rollup = {**rollup, "own_rules": ["trials-fail"], "findings": [*rollup["findings"], own]}
    for floor, told in (("4.3", Queued), ("4.31", Quiet)):
        policy = Policy(floor_usd=Decimal(floor))
        deps = dependencies(Family(Decimal("3.80")), policy=policy)
        assert isinstance(notify(audit(rollup), deps, now=NOON), told)


def _recorded(whole: AuditDocument) -> Entry:
    name = whole["job"]["name"]
    run = JobKey(audit().key.arn.replace("train-bert-0412", name), audit().key.created_at)
    return Entry(run, NOON - timedelta(minutes=5), whole, 1, None, None)


def _under(family_usd: Decimal, floor_usd: Decimal) -> str:
    family = f"family's avoidable and lost cost over 30 days, {usd(family_usd)},"
    return f"{family} is under the floor of {usd(floor_usd)}"


def test_a_replayed_job_of_long_ago_adds_nothing() -> None:
    """The floor is about the last 30 days: a backfill sends no notice for each old job."""
    later = NOON + timedelta(days=40)
    assert isinstance(notify(audit(), dependencies(), now=later), Quiet)


def test_a_family_has_one_message_a_day() -> None:
    """Another run of the day is stored and stays quiet; the next day is new."""
    ledger, queue = MemoryLedger(), RecordingQueue()
    notify(audit(), dependencies(ledger=ledger, queue=queue), now=NOON)
    assert notify(audit(pk=OTHER), dependencies(ledger=ledger, queue=queue), now=NOON) == Quiet(
        "the family already had a message today, and this is no worse"
    )
    tomorrow = replace(audit(pk=OTHER), at=NOON + timedelta(days=1))
    assert isinstance(notify(tomorrow, dependencies(ledger=ledger, queue=queue), now=NOON), Queued)
    assert len(queue.sent) == 4


def test_one_name_in_two_accounts_is_two_families() -> None:
    """Each has its message."""
    ledger = MemoryLedger()
    abroad = document(job=job(account="444455556666"))
    assert isinstance(notify(audit(), dependencies(ledger=ledger), now=NOON), Queued)
    assert isinstance(
        notify(audit(abroad, pk=OTHER), dependencies(ledger=ledger), now=NOON), Queued
    )


def test_a_second_delivery_after_midnight_is_still_of_its_day() -> None:
    """The day is that of the writing: the next day's message is not taken from the family."""
    ledger, queue = MemoryLedger(), RecordingQueue(answers=[Throttled("queue")])
    late = replace(audit(), at=datetime(2026, 5, 20, 23, 59, tzinfo=UTC))
    with pytest.raises(Throttled):
        notify(late, dependencies(ledger=ledger, queue=queue), now=late.at)
    after_midnight = late.at + timedelta(minutes=5)
    deps = dependencies(ledger=ledger, queue=queue)
    assert isinstance(notify(late, deps, now=after_midnight), Queued)
    assert len(ledger.family_day(FAMILY, date(2026, 5, 20)).said()) == 1
    assert ledger.family_day(FAMILY, date(2026, 5, 21)) == FamilyDay()
    next_day = replace(audit(pk=OTHER), at=after_midnight)
    assert isinstance(notify(next_day, deps, now=after_midnight), Queued)


def test_a_large_loss_that_is_decided_days_later_is_compared_with_its_own_day() -> None:
    """What was told of the family today does not silence it; its first line names its day."""
    ledger, queue = MemoryLedger(), RecordingQueue()
    deps = dependencies(ledger=ledger, queue=queue)
    today = NOON + timedelta(days=2)
    notify(replace(audit(dearer(4000), pk=OTHER), at=today), deps, now=today)
    notify(audit(pk=THIRD), deps, now=NOON)
    assert isinstance(notify(audit(dearer(5000)), deps, now=today), Queued)
    first_line = sent(queue)[-2]["payload"]["message"].split("\n")[0]
    assert first_line.endswith("(second message of 2026-05-20, after HIGH $2.04)")


def test_a_delivery_that_died_between_two_sends_is_completed() -> None:
    """The same notices again: deliver knows them by their ids."""
    ledger, queue = MemoryLedger(), RecordingQueue()
    broken = RecordingQueue(answers=[Throttled("queue")])
    deps = dependencies(ledger=ledger, queue=queue)
    half = replace(deps, queues={**deps.queues, "sns": cast("Queue", broken)})
    with pytest.raises(Throttled):
        notify(audit(), half, now=NOON)
    assert [message["channel"] for message in sent(queue)] == ["slack"]
    assert isinstance(notify(audit(), deps, now=NOON), Queued)
    ids = [message["notice_id"] for message in sent(queue)]
    assert ids == [f"{PK}|1|slack", f"{PK}|1|sns", f"{PK}|1|slack"]
    assert notify(audit(), deps, now=NOON) == Quiet("version 1 was told")


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"job": None},
        {"findings": [{}]},
        {"findings": 7},
        {"avoidable_usd": "much"},
        {"job": {**job(), "ended_at": "yesterday"}},
    ],
)
def test_a_document_that_cannot_be_read_is_malformed_before_anything_is_claimed(
    broken: dict[str, Any],
) -> None:
    """The family's message of the day is left to the next audit."""
    ledger, queue = MemoryLedger(), RecordingQueue()
    whole: Any = broken and {**document(), **broken}
    given = replace(audit(), document=whole)
    with pytest.raises(Malformed, match="document cannot be read"):
        notify(given, dependencies(ledger=ledger, queue=queue), now=NOON)
    assert queue.sent == []
    assert isinstance(notify(audit(), dependencies(ledger=ledger, queue=queue), now=NOON), Queued)


@pytest.mark.parametrize("defect", [KeyError("x"), ValueError("x"), ZeroDivisionError("x")])
def test_a_writer_that_fails_is_no_fault_of_the_document(defect: Exception) -> None:
    """It is raised as it is, before anything is claimed: once mended, the notice is queued."""

    def raises(*_: Any) -> Any:
        raise defect

    ledger, queue = MemoryLedger(), RecordingQueue()
    deps = dependencies(ledger=ledger, queue=queue, broken={"slack": raises})
    with pytest.raises(type(defect)):
        notify(audit(), deps, now=NOON)
    assert queue.sent == []
    assert isinstance(
        notify(audit(pk=OTHER), dependencies(ledger=ledger, queue=queue), now=NOON), Queued
    )


def version(number: int, days: int, changed: AuditDocument | None = None) -> NewAudit:
    """A later version of the audit, some days after the first."""
    return replace(audit(changed, version=number), at=NOON + timedelta(days=days))


def test_a_later_version_with_the_same_figures_is_not_sent_again() -> None:
    """A second look that only settles it, or moves part of a cent, is no news on any day."""
    ledger, queue = MemoryLedger(), RecordingQueue()
    again = dependencies(ledger=ledger, queue=queue)
    notify(audit(), again, now=NOON)
    settled = document(avoidable_usd=Decimal("2.0351"), possible_usd=Decimal(3))
    for number, days in ((2, 1), (3, 60)):
        assert notify(version(number, days, settled), again, now=NOON) == Quiet(
            "version 1 was told, and what changed since does not matter"
        )
    assert len(queue.sent) == 2
    assert ledger.family_day(FAMILY, date(2026, 5, 21)) == FamilyDay()


DEARER = document(avoidable_usd=Decimal("9.04"))


def test_a_later_version_is_told_as_a_correction_when_what_was_told_changed() -> None:
    """Compared with what was told last: back to the first figures is a change as well."""
    ledger, queue = MemoryLedger(), RecordingQueue()
    again = dependencies(ledger=ledger, queue=queue)
    for number, figures in ((1, None), (2, DEARER), (3, None)):
        assert isinstance(notify(version(number, number, figures), again, now=NOON), Queued)
    assert isinstance(notify(version(4, 4), again, now=NOON), Quiet)
    subjects = [one["payload"]["subject"] for one in sent(queue) if one["channel"] == "sns"]
    assert subjects[1:] == [
        "Correction: $9.04, not $2.04, was avoidable - train-bert-0412",
        "Correction: $2.04, not $9.04, was avoidable - train-bert-0412",
    ]


def test_a_correction_says_why_the_figure_changed() -> None:
    """From the version that was told; where that cannot be read, it is told without."""

    class Stored(Family):
        """Knows the version that was told, as long as it can be read."""

        first: Any = None

        def audit(self, key: JobKey, version: int | None = None) -> Any:
            return self.first

    cheaper = document(
        findings=[type_finding(saving_usd=Decimal("0.53"))], avoidable_usd=Decimal(1)
    )
    for first, said in ((document(), True), ({"bill": 7}, False), (None, False)):
        ledger, queue, family = MemoryLedger(), RecordingQueue(), Stored()
        family.first = first
        deps = dependencies(family, ledger=ledger, queue=queue)
        notify(audit(), deps, now=NOON)
        assert isinstance(notify(version(2, 0, cheaper), deps, now=NOON), Queued)
        text = sent(queue)[2]["payload"]["message"]
        assert ("What changed: gpu-underused is $0.53, was $1.53; download" in text) is said


def half_queued(ledger: MemoryLedger, given: NewAudit) -> None:
    """One channel's notice is queued; the other's queue fails."""
    deps = dependencies(ledger=ledger)
    broken = cast("Queue", RecordingQueue(answers=[Throttled("queue")]))
    with pytest.raises(Throttled):
        notify(given, replace(deps, queues={**deps.queues, "sns": broken}), now=NOON)


def test_an_audit_waits_for_another_message_of_its_family_that_is_being_queued() -> None:
    """Nobody knows yet whether it will be told; a claim that has run out holds nobody up.

    Of the first message one channel may have its notice, so the other one gets it still.
    """
    ledger = MemoryLedger()
    half_queued(ledger, audit())
    deps = dependencies(ledger=ledger)
    soon = NOON + timedelta(seconds=20)
    waits = notify(audit(pk=OTHER), deps, now=soon)
    assert waits == Later("another message about the family is being queued", LEASE_S - 20 + 1)
    late = NOON + timedelta(seconds=LEASE_S)
    assert isinstance(notify(audit(pk=OTHER), deps, now=late), Queued)
    assert isinstance(notify(audit(), deps, now=late), Queued)
    assert isinstance(notify(audit(dearer(5000), pk=THIRD), deps, now=late), Queued)


def test_a_claim_of_which_nothing_was_queued_is_given_back_at_once() -> None:
    """Another audit of the family need not wait for it."""
    ledger, queue = MemoryLedger(), RecordingQueue(answers=[Throttled("q"), Throttled("q")])
    deps = dependencies(ledger=ledger, queue=queue)
    with pytest.raises(Throttled):
        notify(audit(), deps, now=NOON)
    assert isinstance(notify(audit(pk=OTHER), deps, now=NOON), Queued)
    assert isinstance(notify(audit(), deps, now=NOON), Quiet)


NOTHING = document(findings=[], avoidable_usd=Decimal(0))


def test_a_version_waits_for_an_earlier_one_that_may_be_half_told() -> None:
    """Else its "nothing" would be no news, and the false alarm would stand."""
    ledger = MemoryLedger()
    half_queued(ledger, audit())
    deps = dependencies(ledger=ledger)
    second, late = version(2, 0, NOTHING), NOON + timedelta(seconds=LEASE_S + 30)
    assert isinstance(notify(second, deps, now=NOON), Later)
    assert notify(second, deps, now=late) == Later("another version of the audit is being told", 60)
    ahead = replace(deps, history=cast("History", Ahead()))
    assert isinstance(notify(audit(), ahead, now=late), Queued)
    assert isinstance(notify(second, ahead, now=late), Queued)


class Ahead(Family):
    """The table has a second version already."""

    def head(self, key: JobKey) -> Any:
        return SimpleNamespace(version=2)


def test_nothing_is_told_of_a_job_that_ended_before_the_installation() -> None:
    """It is asked only for audits that would be told; one of the same moment is told."""
    asked: list[datetime] = []
    ended = datetime(2026, 5, 20, 13, tzinfo=UTC)

    def installed_at() -> datetime:
        asked.append(NOON)
        return ended + timedelta(seconds=len(asked) == 1)

    deps = replace(dependencies(), installed_at=installed_at)
    notify(audit(document(findings=[])), deps, now=NOON)
    assert asked == []
    assert notify(audit(), deps, now=NOON) == Quiet("it ended before sageaudit was installed")
    assert isinstance(notify(audit(), deps, now=NOON), Queued)


def test_a_version_that_another_has_replaced_is_not_told() -> None:
    """The newer one comes by itself, with its own figures."""
    assert notify(audit(), dependencies(Ahead()), now=NOON) == Quiet(
        "a newer version of the audit has taken its place"
    )


@pytest.mark.parametrize("error", [KeyError("x"), BadHistory("x"), InvalidOperation("x")])
def test_what_is_stored_of_the_family_and_cannot_be_read_is_malformed(error: Exception) -> None:
    """No later try would read it: its keys and the reason are kept for somebody to look at."""

    class Corrupt(Family):
        def head(self, key: JobKey) -> Any:
            raise error

    class CorruptSums(Family):
        def sums(self, *_: Any, **__: Any) -> Any:
            raise error

    policy = Policy(floor_usd=Decimal(5))
    for family, what in ((Corrupt(), "head of the run"), (CorruptSums(), "sums of the family")):
        with pytest.raises(Malformed, match=f"{what} cannot be read"):
            notify(audit(), dependencies(family, policy=policy), now=NOON)


@pytest.mark.parametrize(
    ("one_unknown", "dollars"),
    [
        ({"avoidable_usd": None, "lost_usd": Decimal("4.55")}, "$4.55"),
        ({"avoidable_usd": Decimal("4.55"), "lost_usd": None}, "$4.55"),
        ({"avoidable_usd": None, "lost_usd": None}, "unknown"),
    ],
)
def test_a_figure_beside_an_unknown_one_is_still_news(
    one_unknown: dict[str, Any], dollars: str
) -> None:
    """The known dollars are kept as what was sent; only two unknowns are an unknown figure."""
    ledger = MemoryLedger()
    deps = dependencies(Family(Decimal(5)), ledger=ledger, policy=Policy(floor_usd=Decimal(2)))
    notify(audit(document(**one_unknown)), deps, now=NOON)
    last = ledger.run_told(PK).said
    assert last is not None
    assert (last.news.severity, usd(last.news.usd)) == ("high", dollars)


def test_a_later_version_of_a_job_without_a_notice_is_sent() -> None:
    """The family's message of the day went to another run, or the first look found nothing."""
    ledger, queue = MemoryLedger(), RecordingQueue()
    again = dependencies(ledger=ledger, queue=queue)
    notify(audit(pk=OTHER), again, now=NOON)
    assert isinstance(notify(audit(), again, now=NOON), Quiet)
    assert isinstance(notify(version(2, 1), again, now=NOON), Queued)
    assert not any("Correction" in body for body, _ in queue.sent)


def test_a_version_that_a_later_one_overtook_stays_quiet() -> None:
    """Its second delivery would bring old figures; that of the newer one is completed."""
    ledger = MemoryLedger()
    notify(audit(), dependencies(ledger=ledger), now=NOON)
    newer = version(2, 1, DEARER)
    assert isinstance(notify(newer, dependencies(ledger=ledger), now=NOON), Queued)
    assert notify(audit(), dependencies(ledger=ledger), now=NOON) == Quiet("version 2 was told")
    assert notify(newer, dependencies(ledger=ledger), now=NOON) == Quiet("version 2 was told")


def test_another_run_of_the_same_name_is_another_job() -> None:
    """The name of a deleted job can be used again."""
    ledger = MemoryLedger()
    notify(audit(), dependencies(ledger=ledger), now=NOON)
    rerun = replace(audit(pk=f"{PK[:-4]}9999"), at=NOON + timedelta(days=1))
    assert isinstance(notify(rerun, dependencies(ledger=ledger), now=NOON), Queued)


def test_a_repeat_keeps_every_limit() -> None:
    """A message that filled them all already."""
    queue = RecordingQueue()
    full = document(job=job(name="a" * 63), rollup=False)
    full["findings"][0]["summary"] = "word " * 2_000
    full["findings"][0]["evidence"] = {f"fact_{n}": "x" * 3_000 for n in range(10)}
    notify(audit(full), dependencies(queue=queue), now=NOON)
    sns_notice, slack_notice = [read_body(body, CHECKS) for body, _ in queue.sent]
    sns = SnsChannel.as_repeat(sns_notice.payload)
    slack = SlackChannel.as_repeat(slack_notice.payload)
    assert len(sns["subject"]) < 100
    assert sns["subject"].isascii()
    assert units(slack["text"]) <= TEXT
    assert units(slack["blocks"][0]["text"]["text"]) <= HEADER
    assert size(slack["blocks"]) <= TOTAL


def test_a_document_of_the_table_gives_the_same_notice_as_a_new_one() -> None:
    """Money that went through the table's text is the same money."""
    queue = RecordingQueue()
    stored = json.loads(text_of(document()), parse_float=Decimal)
    notify(replace(audit(), document=stored), dependencies(queue=queue), now=NOON)
    notify(audit(), dependencies(queue=queue), now=NOON)
    assert queue.sent[:2] == queue.sent[2:]


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        ("bill", "price_kind", None),
        ("job", "status", None),
        ("audit", "coverage", []),
        ("bill", "notes", "x"),
    ],
)
def test_a_writer_that_fails_for_the_form_of_the_document_is_no_defect(
    place: str, key: str, value: Any
) -> None:
    """A key below the top is missing or of another type: the document is malformed, at once."""
    whole: Any = document()
    part = {name: known for name, known in whole[place].items() if name != key}
    whole = {**whole, place: part if value is None else {**part, key: value}}

    def raises(*_: Any) -> Any:
        raise KeyError(key)

    queue = RecordingQueue()
    deps = dependencies(ledger=MemoryLedger(), queue=queue, broken={"slack": raises})
    with pytest.raises(Malformed, match=rf"{place}\.{key} is not"):
        notify(replace(audit(), document=whole), deps, now=NOON)
    assert queue.sent == []
