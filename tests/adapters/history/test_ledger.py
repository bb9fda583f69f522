"""What the ledgers promise: an alert is written with its notices, a notice is sent once."""

import contextlib
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.adapters.history.dynamo import alert_ledger, keys, send_ledger
from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.dynamo.send_ledger import DynamoSendLedger
from sageaudit.domain.alert.alert import Alert, AlertKind, PastAlerts, start_of_hour
from sageaudit.domain.alert.audit_figures import AlertFigures
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.audit.record import SendClaim
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.running import RunningKind, WatchState
from sageaudit.errors import MalformedData
from sageaudit.ports import AlertLedger, Circuit, SendLedger
from sageaudit.structs import replace
from tests.adapters.history.faults import called_actions, everything, meanwhile, refusal
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.entries import NOON
from tests.fakes.memory_ledger import MemoryAlertLedger, MemorySendLedger
from tests.fakes.messages import alert

NOTICE = "JOB#arn#1|1|slack"
LATER = NOON + timedelta(seconds=61)
MUCH_LATER = LATER + timedelta(seconds=61)
FIGURES = AlertFigures(Severity.HIGH, Decimal("2.04"), None, Decimal("0.50"), Decimal(7))
RUN_A = keys.job_pk(JobKey("a", NOON))
UNKNOWN = AlertFigures(Severity.LOW, None, None)
BODIES = {"sns": "{}", "slack": "a body \u2028"}


def key(name: str) -> JobKey:
    """The run of this name."""
    return JobKey(name, NOON)


def last(name: str, version: int = 1, figures: AlertFigures = FIGURES) -> Alert:
    """The last alert of a run, of noon."""
    return alert(figures, version, NOON, keys.job_pk(key(name)))


def make_alert(name: str, version: int = 1, figures: AlertFigures = FIGURES) -> Alert:
    """What it was about."""
    return replace(
        last(name, version, figures),
        amount_kind=AmountKind.COUNTED,
        recommendation_ids=("abcdefgh",),
        amount=Decimal("540.25"),
        is_single_occurrence=True,
    )


def written(
    ledger: AlertLedger,
    name: str,
    figures: AlertFigures = FIGURES,
    version: int = 1,
    group: str = "f",
) -> PastAlerts | None:
    """Reads what is there, and writes an alert; None where it was not written."""
    past = ledger.past_alerts(key(name), group)
    after = past.with_alerts(last(name, version, figures), [make_alert(name, version, figures)])
    return after if ledger.write_alert(past, after, BODIES, NOON) else None


def test_the_line_about_a_job_is_written_once_with_its_notices(alerts: AlertLedger) -> None:
    """Alone or with an alert of another channel; what it is about has no alert by it."""
    past = alerts.past_alerts(key("a"), "f")
    assert not alerts.has_job_line(key("a"))
    assert alerts.write_alert(past, past, {"slack": "{}"}, NOON, includes_job_line=True)
    assert alerts.has_job_line(key("a"))
    assert not alerts.has_job_line(key("b"))
    assert alerts.past_alerts(key("a"), "f") == past
    assert alerts.notice(keys.run_alerts_pk(RUN_A), keys.notice_sk(1, "slack")) == ("slack", "{}")
    assert not alerts.write_alert(past, past, {"slack": "again"}, NOON, includes_job_line=True)
    after = past.with_alerts(last("a"), [make_alert("a")])
    assert not alerts.write_alert(
        past, after, {"sns": "{}", "slack": "{}"}, NOON, includes_job_line=True
    )
    assert alerts.write_alert(past, after, {"sns": "{}"}, NOON)


def test_no_line_is_written_where_an_alert_about_the_job_came_meanwhile(
    alerts: AlertLedger,
) -> None:
    """The channel may have had that alert."""
    past = alerts.past_alerts(key("a"), "f")
    assert written(alerts, "a")
    assert not alerts.write_alert(past, past, {"slack": "{}"}, NOON, includes_job_line=True)
    assert not alerts.has_job_line(key("a"))


def test_an_alert_comes_back_as_it_was_written(alerts: AlertLedger) -> None:
    """Unknown figures too; other runs, families and days are their own."""
    assert alerts.past_alerts(key("a"), "f") == PastAlerts(RUN_A, "f")
    first = written(alerts, "a")
    assert alerts.past_alerts(key("a"), "f") == first
    second = written(alerts, "b", UNKNOWN, 3)
    assert second is not None
    assert second.subject_alerts == (make_alert("a"), make_alert("b", 3, UNKNOWN))
    assert alerts.past_alerts(key("b"), "f") == second
    assert alerts.past_alerts(key("a"), "f") == replace(second, run=RUN_A, last_run_alert=last("a"))
    assert alerts.past_alerts(key("c"), "g").last_run_alert is None


def test_its_notices_are_there_with_it(alerts: AlertLedger) -> None:
    """By the keys that the stream says; where there is none, None."""
    written(alerts, "a", version=12)
    assert alerts.notice(f"ALERT#{RUN_A}", "NOTICE#00012#slack") == ("slack", "a body \u2028")
    assert alerts.notice(f"ALERT#{RUN_A}", "NOTICE#00012#sns") == ("sns", "{}")
    assert alerts.notice(f"ALERT#{RUN_A}", "NOTICE#00001#sns") is None


def test_a_running_job_is_kept_with_its_notices(alerts: Any) -> None:
    """Once: a state that was read before it was written does not take its place."""
    key = JobKey("arn:aws:sagemaker:us-east-1:111122223333:training-job/a", NOON)
    empty = alerts.watch_state(key)
    assert empty == WatchState(key)
    cheap = replace(empty, revision=1, gpus=8)
    assert alerts.write_watch_state(cheap, {}, NOON)
    assert alerts.watch_state(key) == cheap
    said = WatchState(
        key,
        revision=2,
        usd_per_hour=Decimal("37.69"),
        idle_since=NOON,
        idle_until=LATER,
        idle_message_count=1,
        sent=frozenset({RunningKind.LONG_RUN}),
        channels=("sns", "slack"),
        messages=1,
    )
    assert alerts.write_watch_state(said, BODIES, LATER)
    assert alerts.watch_state(key) == said
    assert not alerts.write_watch_state(replace(said, messages=7), {"sns": "twice"}, LATER)
    pk = keys.watch_pk(key)
    assert {name: alerts.notice(pk, keys.notice_sk(1, name)) for name in BODIES} == {
        name: (name, body) for name, body in BODIES.items()
    }
    assert alerts.notice(pk, keys.notice_sk(7, "sns")) is None


def test_what_was_written_since_is_not_overwritten(alerts: AlertLedger) -> None:
    """Of two that read the same, one writes: by the family, or by the run; all or nothing."""
    before = {name: alerts.past_alerts(key(name), "f") for name in ("a", "b")}
    elsewhere = alerts.past_alerts(key("a"), "g")
    first = before["a"].with_alerts(last("a"), [make_alert("a")])
    assert alerts.write_alert(before["a"], first, BODIES, NOON)
    for past in (before["a"], before["b"], elsewhere):
        late = past.with_alerts(last("a", 2), [make_alert("a", 2)])
        assert not alerts.write_alert(past, late, {"late": "{}"}, NOON)
    assert alerts.past_alerts(key("a"), "f") == first
    assert alerts.past_alerts(key("b"), "f").last_run_alert is None
    assert alerts.notice(f"ALERT#{RUN_A}", "NOTICE#00002#late") is None


def test_a_correction_takes_the_place_of_what_it_corrects(alerts: AlertLedger) -> None:
    """Of several alerts about one run, in each; the newest 100 of a family are kept."""
    written(alerts, "a")
    past = alerts.past_alerts(key("a"), "f")
    assert alerts.write_alert(past, past.with_alerts(last("a", 2, UNKNOWN), []), BODIES, NOON)
    assert alerts.past_alerts(key("a"), "f").subject_alerts == (make_alert("a", 2, UNKNOWN),)
    past = alerts.past_alerts(key("b"), "f")
    many = [
        make_alert("b"),
        replace(make_alert("b"), kind=AlertKind.COST_SPIKE, amount_kind=None),
    ] * 50
    assert alerts.write_alert(past, past.with_alerts(last("b"), many), BODIES, NOON)
    assert alerts.past_alerts(key("b"), "f").subject_alerts == tuple(many)
    assert alerts.past_alerts(key("a"), "f").last_run_alert == last("a", 2, UNKNOWN)


def test_any_text_can_be_a_family_or_a_run(alerts: AlertLedger) -> None:
    """Long and hostile names are kept apart."""
    long = "😀" * 1_000
    for name in (f"{long}a", f"{long}b", ""):
        assert written(alerts, f"{name} run", group=name) is not None
    assert alerts.past_alerts(key(f"{long}a run"), f"{long}b").last_run_alert == last(
        f"{long}a run"
    )
    assert alerts.past_alerts(key(f"{long}c run"), f"{long}c").last_run_alert is None


def test_no_alert_is_written_about_a_version_that_has_a_newer_one(client: Any, table: str) -> None:
    """The third condition of the transaction: else a newer one could be decided without it."""
    ledger = DynamoAlertLedger(client, table)
    newer = {"pk": {"S": RUN_A}, "sk": {"S": "AUDIT#00002"}}
    client.put_item(TableName=table, Item=newer)
    assert written(ledger, "a", version=1) is None
    assert everything(client, table) == [newer]
    assert written(ledger, "a", version=2) is not None


@pytest.mark.parametrize(
    ("sk", "damage"), [("LAST", {"severity": {"S": "loud"}}), ("ALERTS", {"alerts": {"S": "x"}})]
)
def test_an_item_that_cannot_be_read_is_named(
    client: Any, table: str, sk: str, damage: Any
) -> None:
    """So that somebody can delete it."""
    ledger = DynamoAlertLedger(client, table)
    written(ledger, "a")
    [item] = [item for item in everything(client, table) if item["sk"]["S"] == sk]
    client.put_item(TableName=table, Item=item | damage)
    with pytest.raises(MalformedData, match=rf" {sk} cannot be read .*: delete it"):
        ledger.past_alerts(key("a"), "f")


def test_ledger_items_expire(client: Any, table: str) -> None:
    """45 days after they were written, long after any redelivery; a run's last alert stays.

    The messages about a family stay for 400 days.
    """
    sends = DynamoSendLedger(client, table)
    written(DynamoAlertLedger(client, table), "a")
    sends.claim_send("n", NOON, 60)
    sends.claim_send("sent", NOON, 60)
    sends.mark_sent("sent", NOON)
    sends.mark_failed("failed", NOON, "no_service")
    sends.replace_circuit("slack", Circuit(), Circuit(1), NOON)
    items = everything(client, table)
    expiring = [item["expires_at"]["N"] for item in items if "expires_at" in item]
    days = [(int(at) - NOON.timestamp()) / 86_400 for at in expiring]
    assert sorted(days) == [45, 45, 45, 45, 45, 45, 400]
    assert [item["sk"]["S"] for item in items if "expires_at" not in item] == ["LAST"]


def test_the_table_is_called_for_what_is_declared(client: Any, table: str) -> None:
    """PERMISSIONS are the actions that the adapters call: none is missing, none is spare."""
    with called_actions(client) as called:
        written(DynamoAlertLedger(client, table), "a")
        assert called == set(alert_ledger.PERMISSIONS)
        called.clear()
        sends = DynamoSendLedger(client, table)
        sends.claim_send("n", NOON, 60)
        sends.mark_sent("n", NOON)
        sends.circuit("slack")
        assert called == set(send_ledger.PERMISSIONS)


CLAIM, SENT, FAILED, UNKNOWN_ANSWER = "claim", "sent", "failed", "unknown"
STORIES: dict[str, list[tuple[str, datetime, SendClaim | None]]] = {
    "while the lease lives, every other delivery comes back later": [
        (CLAIM, NOON, SendClaim.FIRST),
        (CLAIM, NOON, SendClaim.BUSY),
        (CLAIM, NOON + timedelta(seconds=59), SendClaim.BUSY),
    ],
    "what was sent is done, also long after its lease": [
        (CLAIM, NOON, SendClaim.FIRST),
        (SENT, NOON, None),
        (CLAIM, NOON, SendClaim.DONE),
        (CLAIM, MUCH_LATER, SendClaim.DONE),
    ],
    "what was not posted is first again": [
        (CLAIM, NOON, SendClaim.FIRST),
        (FAILED, NOON, None),
        (CLAIM, NOON, SendClaim.FIRST),
        (CLAIM, NOON, SendClaim.BUSY),
    ],
    "a try that died is repeated once, then a person has to look": [
        (CLAIM, NOON, SendClaim.FIRST),
        (CLAIM, LATER, SendClaim.REPEAT),
        (CLAIM, LATER, SendClaim.BUSY),
        (CLAIM, MUCH_LATER, SendClaim.EXHAUSTED),
        (CLAIM, MUCH_LATER, SendClaim.EXHAUSTED),
    ],
    "what was given up is a repeat each time that a person sends it again": [
        (CLAIM, NOON, SendClaim.FIRST),
        (CLAIM, LATER, SendClaim.REPEAT),
        (UNKNOWN_ANSWER, MUCH_LATER, None),
        (CLAIM, MUCH_LATER, SendClaim.REPEAT),
        (UNKNOWN_ANSWER, MUCH_LATER, None),
        (CLAIM, MUCH_LATER, SendClaim.REPEAT),
    ],
    "a try without an answer is repeated, at once as far as the ledger goes": [
        (CLAIM, NOON, SendClaim.FIRST),
        (UNKNOWN_ANSWER, NOON, None),
        (CLAIM, NOON, SendClaim.REPEAT),
    ],
    "a late failure of the first try does not undo a repeat that was sent": [
        (CLAIM, NOON, SendClaim.FIRST),
        (CLAIM, LATER, SendClaim.REPEAT),
        (SENT, LATER, None),
        (FAILED, LATER, None),
        (UNKNOWN_ANSWER, LATER, None),
        (CLAIM, MUCH_LATER, SendClaim.DONE),
    ],
    # It ran longer than its lease, by a clock that is ahead; the repeat may have posted.
    "the first try cannot make a repeat first again": [
        (CLAIM, NOON, SendClaim.FIRST),
        (CLAIM, LATER, SendClaim.REPEAT),
        (FAILED, LATER, None),
        (CLAIM, LATER, SendClaim.BUSY),
        (UNKNOWN_ANSWER, LATER, None),
        (FAILED, LATER, None),
        (CLAIM, LATER, SendClaim.REPEAT),
    ],
    "sent without a claim holds": [(SENT, NOON, None), (CLAIM, NOON, SendClaim.DONE)],
    "failed without a claim holds": [(FAILED, NOON, None), (CLAIM, NOON, SendClaim.FIRST)],
    "unknown without a claim holds": [
        (UNKNOWN_ANSWER, NOON, None),
        (CLAIM, NOON, SendClaim.REPEAT),
    ],
}


@pytest.mark.parametrize("sentence", STORIES)
def test_a_notice_is_sent_once(sends: SendLedger, sentence: str) -> None:
    """What each claim of it gets; another notice is its own."""
    for what, now, claim in STORIES[sentence]:
        if what == CLAIM:
            assert sends.claim_send(NOTICE, now, 60) is claim
        elif what == SENT:
            sends.mark_sent(NOTICE, now)
        elif what == FAILED:
            sends.mark_failed(NOTICE, now, "channel_is_archived \ud800" * 100)
        else:
            sends.mark_unknown(NOTICE, now, "no answer")
    assert sends.claim_send("another", NOON, 60) is SendClaim.FIRST


def test_how_a_channel_answers_is_known_to_all(sends: SendLedger) -> None:
    """Changed by whoever knew it last, one by one."""
    fresh, failing, closed = Circuit(), Circuit(1, 0), Circuit(3, 1_779_282_600)
    assert sends.circuit("slack") == fresh
    assert sends.replace_circuit("slack", fresh, failing, NOON)
    assert not sends.replace_circuit("slack", fresh, closed, NOON)
    assert sends.circuit("slack") == failing
    assert sends.replace_circuit("slack", failing, closed, NOON)
    assert sends.replace_circuit("slack", closed, fresh, NOON)
    assert sends.replace_circuit("slack", fresh, failing, NOON)
    assert sends.circuit("sns") == fresh


def test_a_lease_that_two_take_at_once_has_one_holder(client: Any, table: str) -> None:
    """Between reading an expired lease and taking it, another delivery took it."""
    ledger = DynamoSendLedger(client, table)
    ledger.claim_send("n", NOON, 60)
    claims: list[SendClaim] = []

    def overtake(**_: Any) -> None:
        if not claims:
            claims.append(SendClaim.BUSY)
            claims[0] = ledger.claim_send("n", LATER, 60)

    with meanwhile(client, "after-call PutItem", overtake):
        claims.append(ledger.claim_send("n", LATER, 60))
    assert claims == [SendClaim.REPEAT, SendClaim.BUSY]


def test_a_lease_released_between_write_and_answer_is_busy(client: Any, table: str) -> None:
    """Without the item that stands nothing is assumed: come back later."""
    refused = refusal("ConditionalCheckFailedException")
    with meanwhile(client, "before-call PutItem", refused):
        assert DynamoSendLedger(client, table).claim_send("n", NOON, 60) is SendClaim.BUSY


class Twice:
    """A client whose SDK makes each write again, since the answer of the first was lost."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.meta = client.meta

    def put_item(self, **params: Any) -> Any:
        with contextlib.suppress(ClientError):
            self._client.put_item(**params)
        return self._client.put_item(**params)


def test_a_claim_whose_answer_was_lost_is_held_all_the_same(client: Any, table: str) -> None:
    """The second write is refused by what the first wrote: it knows its own mark."""
    ledger = DynamoSendLedger(Twice(client), table)
    assert ledger.claim_send("n", NOON, 60) is SendClaim.FIRST
    assert ledger.claim_send("n", NOON, 60) is SendClaim.BUSY
    assert ledger.claim_send("n", LATER, 60) is SendClaim.REPEAT


DAMAGES: list[dict[str, Any]] = [
    {"state": {"S": "TELEPATHY"}},
    {"state": {"NULL": True}},
    {"tries": {"S": "many"}},
    {"lease_until": {"L": []}},
]


def test_a_damaged_row_is_a_repeat(client: Any, table: str) -> None:
    """Whatever it said, the notice may have been posted; the next claim mends the row.

    A damaged circuit stops no notice: it reads as one of a channel that answers.
    """
    ledger = DynamoSendLedger(client, table)
    for number, damage in enumerate(DAMAGES):
        ledger.claim_send(f"n{number}", NOON, 60)
        [item] = [
            item for item in everything(client, table) if item["pk"]["S"].endswith(str(number))
        ]
        client.put_item(TableName=table, Item=item | damage)
        assert ledger.claim_send(f"n{number}", NOON, 60) is SendClaim.REPEAT
        assert ledger.claim_send(f"n{number}", NOON, 60) is SendClaim.BUSY
        ledger.mark_sent(f"n{number}", NOON)
        assert ledger.claim_send(f"n{number}", NOON, 60) is SendClaim.DONE
    ledger.replace_circuit("slack", Circuit(), Circuit(9, 9), NOON)
    [item] = [item for item in everything(client, table) if "failures" in item]
    bad = {"failures": {"S": "x"}, "open_until": {"NULL": True}}
    client.put_item(TableName=table, Item=item | bad)
    assert ledger.circuit("slack") == Circuit()


operations = st.tuples(
    st.sampled_from(["claim", "claim", "sent", "failed", "unknown", "circuit", "past", "write"]),
    st.sampled_from(["n1", "n2"]),
    st.integers(0, 300),
)


def answer(
    alerts: AlertLedger, sends: SendLedger, what: str, name: str, second: int
) -> object | None:
    """One operation on the ledgers at a second after noon."""
    now: datetime = NOON + timedelta(seconds=second)
    if what == "claim":
        return sends.claim_send(name, now, 60)
    if what == "past":
        return alerts.past_alerts(key(name), "f")
    if what == "write":
        run = key(name)
        past = alerts.past_alerts(run, "f") if second % 4 else PastAlerts(keys.job_pk(run), "f")
        sent = alert(UNKNOWN, second % 3 + 1, now, past.run)
        after = past.with_alerts(sent, [replace(sent, amount_kind=AmountKind.COUNTED)])
        hour = alerts.channel_hour("slack", start_of_hour(now)).with_message(name, None, 2)
        hour = replace(hour, sent=hour.sent + (second % 7 == 0))  # another message came first
        return alerts.write_alert(past, after, BODIES, now, [hour]), sends_hour(alerts, sends, now)
    if what == "circuit":
        before, changed = Circuit(second % 2, second % 3), Circuit(second % 3, second % 2)
        return sends.replace_circuit(name, before, changed, now), sends.circuit(name)
    if what == "sent":
        sends.mark_sent(name, now)
    elif what == "failed":
        sends.mark_failed(name, now, "reason")
    else:
        sends.mark_unknown(name, now, "reason")
    return None


def sends_hour(alerts: AlertLedger, sends: SendLedger, now: datetime) -> object:
    """The hour as both see it; in memory they are two."""
    if isinstance(sends, MemorySendLedger):
        return alerts.channel_hour("slack", start_of_hour(now))
    found = sends.channel_hour("slack", start_of_hour(now))
    assert found == alerts.channel_hour("slack", start_of_hour(now))
    return found


def test_the_ledgers_never_differ() -> None:
    """The same operations get the same answers from DynamoDB and from memory."""
    with dynamodb() as client:

        @settings(max_examples=25, deadline=None)
        @given(st.lists(operations, max_size=12))
        def holds(calls: list[tuple[str, str, int]]) -> None:
            table = new_table(client)
            dynamo = DynamoAlertLedger(client, table), DynamoSendLedger(client, table)
            memory = MemoryAlertLedger(), MemorySendLedger()
            for what, name, second in calls:
                expected = answer(*memory, what, name, second)
                assert answer(*dynamo, what, name, second) == expected

        holds()
