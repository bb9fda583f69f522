"""The histories never differ, and daily sums are those of all newest audits, whatever happens."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import AuditEntry, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Scope, SumRow, Sums, group_rows, sums_from_document
from sageaudit.domain.job.job import Purchase
from sageaudit.ports import History
from sageaudit.structs import replace
from tests.adapters.history.faults import Killed, kill, meanwhile, once, refusal
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes import random_history
from tests.fakes.documents import ACCOUNT, REGION
from tests.fakes.entries import entry, finding, key
from tests.fakes.families import run_summary

NAMES = ("a", "b", "c")
SINCE, UNTIL = date(2026, 10, 1), date(2026, 12, 31)

usd = st.integers(0, 10**10).map(lambda micros: Decimal(micros).scaleb(-6))


def _entry(name: str, second: int, kind: str | None, rules: set[str], **fields: Any) -> AuditEntry:
    saving: Decimal = fields["saving"]
    given = entry(
        name,
        modified_s=second,
        again=fields["again"],
        job={
            "family": fields["family"],
            "owner": fields["owner"],
            "tags": fields["tags"],
            "ended_at": f"2026-{fields['day']}T12:00Z",
        },
        bill={"total_usd": fields["total"]},
        avoidable_usd=saving * len(rules),
        findings=[finding(name, saving_usd=saving) for name in sorted(rules)],
        rollup=fields["rollup"],
        rollup_rules=["r1"],
        audit={"settled": fields["settled"], "due_at": f"2026-11-20T1{fields['due']}:00:00Z"},
    )
    return replace(given, run_summary=run_summary(Purchase.ON_DEMAND, instance_type=kind))


entries = st.builds(
    _entry,
    st.sampled_from(NAMES),
    st.integers(0, 5),
    st.sampled_from(["ml.g5.xlarge", None]),
    st.sets(st.sampled_from(["r1", "r2"])),
    again=st.booleans(),
    family=st.sampled_from(["f", "f#g"]),
    owner=st.sampled_from(["o", None]),
    tags=st.dictionaries(
        st.sampled_from(["team", "stage"]), st.sampled_from(["v", "w", None]), max_size=2
    ),
    day=st.sampled_from(["10-31", "11-01"]),
    total=st.one_of(st.none(), usd),
    saving=usd,
    rollup=st.sampled_from([False, False, True]),
    settled=st.booleans(),
    due=st.integers(0, 9),
)


def listed(history: History) -> list[Any]:
    """All that can be listed of a history of these entries."""
    first = next(history.runs(RunQuery.for_account(ACCOUNT)), None)
    before_first = first.ended_at if first else None
    queries: list[RunQuery[Any]] = [
        *(RunQuery.for_day(date(2026, *day)) for day in ((10, 31), (11, 1))),
        *(RunQuery.for_family(ACCOUNT, REGION, family) for family in ("f", "f#g")),
        RunQuery.for_account(ACCOUNT),
        *(RunQuery.for_rule(name) for name in ("r1", "r2")),
        RunQuery.for_owner("o"),
        RunQuery.due_until(datetime(2026, 11, 20, 15, tzinfo=UTC)),
    ]
    rows = [
        list(history.runs(query, ended_before=before))
        for query in queries
        for before in (None, before_first)
    ]
    return [rows, [(history.summary(key(name)), history.audit(key(name))) for name in NAMES]]


def added_up(history: History, scope: Scope) -> dict[Any, Sums]:
    """The sums by name and day; each figure has at most 6 decimals."""
    rows = list(history.daily_sums(scope, SINCE, UNTIL))
    return group_rows(rows, lambda row: (row.name, row.day))


def expected(history: History, scope: Scope) -> dict[Any, Sums]:
    """The same from the newest documents and heads."""
    sums: dict[Any, Sums] = {}
    for name in NAMES:
        document, head = history.audit(key(name)), history.summary(key(name))
        if document is None or head is None:
            continue
        names: dict[Scope, list[str | None]] = {
            Scope.ACCOUNT: [None],
            Scope.FAMILY: [document["job"]["family"]],
            Scope.OWNER: [document["job"]["owner"]],
            Scope.TYPE: [head.instance_type],
            Scope.TAG: [f"{tag}={value}" for tag, value in head.tags.items() if value],
        }
        day = date.fromisoformat((document["job"]["ended_at"] or "")[:10])
        for sum_name in names[scope]:
            place = sum_name, day
            sums[place] = sums.get(place, Sums()) + sums_from_document(document)
    return {place: place_sums for place, place_sums in sums.items() if place_sums != Sums()}


class Recording(RuleBasedStateMachine):
    """Deliveries to both histories, some of which are killed, refused or overtaken midway."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.client = self.stack.enter_context(dynamodb())
        table = new_table(self.client)
        self.dynamo = DynamoHistory(self.client, table, sleep=lambda _: None)
        self.other = DynamoHistory(self.client, table, sleep=lambda _: None)
        self.sqlite = SqliteHistory()

    @rule(given=entries, times=st.sampled_from([1, 1, 2]))
    def deliver(self, given: AuditEntry, times: int) -> None:
        for _ in range(times):
            assert self.dynamo.record(given) == self.sqlite.record(given)

    @rule(
        given=entries,
        step=st.sampled_from(
            [
                "before-call GetItem",
                "before-call PutItem",
                "after-call PutItem",
                "before-call TransactWriteItems",
                "after-call TransactWriteItems",
                "before-call UpdateItem",
                "after-call UpdateItem",
            ]
        ),
    )
    def kill(self, given: AuditEntry, step: str) -> None:
        with meanwhile(self.client, step, kill), suppress(Killed):
            self.dynamo.record(given)
        for scope in Scope:
            assert added_up(self.dynamo, scope) == expected(self.dynamo, scope)
        self.dynamo.record(given)
        self.sqlite.record(given)

    @rule(given=entries, times=st.integers(1, 4))
    def conflict(self, given: AuditEntry, times: int) -> None:
        busy = refusal(
            "TransactionCanceledException", times=times, reasons=("TransactionConflict",)
        )
        with meanwhile(self.client, "before-call TransactWriteItems", busy):
            self.dynamo.record(given)
        self.sqlite.record(given)

    @rule(given=entries, overtaking=entries, same=st.booleans())
    def overtake(self, given: AuditEntry, overtaking: AuditEntry, same: bool) -> None:
        first = given if same else overtaking

        def overtake() -> None:
            self.other.record(first)
            self.sqlite.record(first)

        with meanwhile(self.client, "before-call TransactWriteItems", once(overtake)):
            self.dynamo.record(given)
        self.sqlite.record(given)

    @invariant()
    def the_sums_are_those_of_the_newest_audits(self) -> None:
        for scope in Scope:
            sums = expected(self.sqlite, scope)
            assert added_up(self.dynamo, scope) == added_up(self.sqlite, scope) == sums

    @invariant()
    def the_histories_have_the_same_heads(self) -> None:
        for name in NAMES:
            assert self.dynamo.summary(key(name)) == self.sqlite.summary(key(name))

    def teardown(self) -> None:
        assert listed(self.dynamo) == listed(self.sqlite)
        self.stack.close()


Recording.TestCase.settings = settings(max_examples=6, stateful_step_count=8, deadline=None)
TestTheHistoriesAreExact = Recording.TestCase


def answers(history: History, heads: list[AuditSummary]) -> Iterator[Any]:
    """Every list that a question about these audits reads, from its start and from the middle."""
    queries: dict[RunQuery[Any], None] = {}
    for head in heads:
        day = head.ended_at
        queries |= dict.fromkeys(
            (
                RunQuery.for_day(day.date()),
                RunQuery.for_family(head.account, head.region, head.family),
                RunQuery.for_account(head.account),
                RunQuery.for_name(head.job),
                *(RunQuery.for_rule(name) for name in random_history.RULES),
                *([RunQuery.for_owner(head.owner)] if head.owner else []),
            )
        )
    for query in queries:
        for before in (None, random_history.NOW - timedelta(days=4)):
            yield query, before, list(history.runs(query, ended_before=before))
    since, until = random_history.NOW.date() - timedelta(days=9), random_history.NOW.date()
    for scope in Scope:
        rows = list(history.daily_sums(scope, since, until))
        yield scope, added_of(rows)
        for part in ("account", "region", "name"):
            for value in sorted({getattr(row, part) or "" for row in rows} - {""}):
                sum_rows = list(history.daily_sums(scope, since, until, **{part: value}))
                yield scope, value, added_of(sum_rows)
    yield [history.audit(head.key) for head in heads]


def added_of(rows: list[SumRow]) -> dict[Any, Sums]:
    """By day, place and name: how many rows hold a sum is each history's own."""
    return group_rows(rows, lambda row: (row.day, row.account, row.region, row.name))


def test_the_histories_answer_alike_whatever_a_question_reads() -> None:
    """So a question that is answered from one is answered from the other: order, rows and sums."""
    with dynamodb() as client, SqliteHistory() as sqlite:
        dynamo = DynamoHistory(client, new_table(client))
        for history in (dynamo, sqlite):
            random_history.fill(history, 36, days=10)
        days = [random_history.NOW.date() - timedelta(days=n) for n in range(11)]
        heads = [head for day in days for head in sqlite.runs(RunQuery.for_day(day))]
        assert len(heads) == 36
        for ours, theirs in zip(answers(dynamo, heads), answers(sqlite, heads), strict=True):
            assert ours == theirs
