"""One odd value anywhere in a history makes at most its own item unreadable."""

import contextlib
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.member_registry import DynamoMemberRegistry
from sageaudit.adapters.history.dynamo.send_ledger import DynamoSendLedger
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.adapters.history.sqlite import schema
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.advice.advice import Decision, DecisionAction
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.members import Denial, WaitingEvent
from sageaudit.domain.running import WatchState
from sageaudit.domain.sweep import JobList, ListState, SentEvent
from sageaudit.errors import MalformedData
from sageaudit.ports import Circuit, History
from tests.adapters.history.faults import everything
from tests.adapters.history.test_ledger import key as alert_key
from tests.adapters.history.test_ledger import written
from tests.fakes.entries import NOON, key, unsettled_entry, with_detail
from tests.fakes.lambda_events import HOME
from tests.fakes.sweeps import store_list
from tests.properties.odd_values import ABSENT, paths, replaced, some_of

NAMES = ("a", "b", "c")
DAYS = (date(2026, 1, 1), date(2026, 12, 31))
LIST = JobList("111122223333", "us-east-1", JobKind.TRAINING)
IDS = ("abcdefgh", "ijklmnop")
UNREADABLE = "unreadable"
Questions = Mapping[str, Callable[[], object]]
Answers = dict[tuple[str, str], object]
STEP = 101
"""Of the many cases of a whole history, `make test-all` tries each 101st."""


class Rows(dict[object, object]):
    """The rows of a list by their keys."""


def fill(history: Any) -> None:
    """Three runs, two of them of one family, and two decisions."""
    for number, name in enumerate(NAMES):
        job = {"family": "training/bert" if name == "c" else "training/resnet"}
        ended_at = NOON + timedelta(hours=number)
        run = unsettled_entry(name, due_at="2026-11-21T00:00:00Z", job=job | {"ended_at": ended_at})
        history.record(with_detail(run))
    for recommendation_id in IDS:
        history.save_decision(
            Decision(recommendation_id, DecisionAction.EXEMPT, "ana", NOON, DAYS[1], "two GPUs")
        )


def questions(history: Any) -> Questions:
    """Everything that can be read from a history, by question; lists by the key of their rows."""
    lists: dict[str, RunQuery[Any]] = {
        "day": RunQuery.for_day(NOON.date()),
        "account": RunQuery.for_account("111122223333"),
        "owner": RunQuery.for_owner("ana"),
        "family": RunQuery.for_family("111122223333", "us-east-1", "training/resnet"),
        "rule": RunQuery.for_rule("gpu-underused"),
        "due": RunQuery.due_until(NOON + timedelta(days=2)),
        **{f"name {name}": RunQuery.for_name(name) for name in NAMES},
    }
    return {
        **{
            name: partial(lambda query: Rows((row.key, row) for row in history.runs(query)), query)
            for name, query in lists.items()
        },
        "parts": lambda: Rows(
            (part.label, part)
            for part in history.sum_parts(
                lists["day"], lambda summary: summary.key, ("key", "tags"), with_usage=True
            )
        ),
        **{
            f"sums_by_{scope}": partial(
                lambda scope: Rows(
                    ((row.name, row.day), row) for row in history.daily_sums(scope, *DAYS)
                ),
                scope,
            )
            for scope in Scope
        },
        "decisions": lambda: Rows((row.recommendation_id, row) for row in history.decisions()),
        **{
            f"{read.__name__} {name}": partial(read, key(name))
            for read in (history.summary, history.audit, history.detail)
            for name in NAMES
        },
        **{f"recheck {name}": partial(_recheck, history, name) for name in NAMES},
    }


def _recheck(history: History, name: str) -> None:
    at = NOON + timedelta(hours=NAMES.index(name))
    history.recheck_family(
        key(name),
        account="111122223333",
        region="us-east-1",
        family="training/resnet",
        ended_at=at,
        due_at=NOON + timedelta(days=1),
    )


def answers(asked: Questions) -> Answers:
    """What each question says of each key; a question about one thing has the key "".

    Any error but that something is malformed fails the test.
    """
    said: Answers = {}
    for name, ask in asked.items():
        try:
            answer = ask()
        except MalformedData:
            answer = UNREADABLE
        rows = answer.items() if type(answer) is Rows else [("", answer)]
        said |= {(name, str(row_key)): repr(row) for row_key, row in rows}
    return said


def harm(before: Answers, after: Answers) -> str:
    """Returns what is lost or told otherwise beside one item; "" if nothing is.

    Of each list at most one row may be, and of all point reads of a kind at most one.
    """
    counts = Counter(
        name.split(" ")[0] for (name, key), row in before.items() if after.get((name, key)) != row
    )
    return ", ".join(f"{name}: {count}" for name, count in counts.items() if count > 1)


DYNAMO_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**37, Decimal("0.5"), Decimal("-1E+100"), Decimal("1E-100"), b"x"),
    *("", "x", "high", "2026-02-31T00:00:00Z", "9999-12-31T23:59:59.999999Z", [], ["x"], {}),
    *({"x": None}, ABSENT),
)


class Table:
    """A table of three runs, two decisions, two subjects with alerts, and what a sweep notes."""

    def __init__(self, client: Any, name: str) -> None:
        self.client, self.name = client, name
        place = client, name
        history, ledger = DynamoHistory(*place, clock=lambda: NOON), DynamoAlertLedger(*place)
        fill(history)
        sweep_store, sends = DynamoSweepStore(*place), DynamoSendLedger(*place)
        for subject, run in (("f", "a"), ("g", "b")):
            assert written(ledger, run, group=subject)
            ledger.write_watch_state(WatchState(alert_key(run), revision=1), {"slack": "{}"}, NOON)
            sweep_store.record_event_sent(alert_key(run), SentEvent(NOON, None))
            hour = ledger.channel_hour(run, NOON).with_message("a job", Decimal(2), 5)
            past = ledger.past_alerts(alert_key(run), subject)
            ledger.write_alert(past, past, {}, NOON, [hour])
        ledger.write_digest(NOON.date(), {(0, "sns"): "{}"}, NOON)
        store_list(sweep_store, LIST, ListState(NOON, NOON, NOON))
        sweep_store.record_installation()
        registry = DynamoMemberRegistry(*place)
        registry.record_seen(HOME, NOON, 1)
        registry.add_denial(HOME, Denial(NOON, NOON, ("sts:AssumeRole",), "no such role"))
        for run in ("a", "b"):
            event = WaitingEvent(HOME, JobKind.TRAINING, "{}", NOON)
            registry.add_waiting_event(alert_key(run), event)
        sends.replace_circuit("slack", Circuit(), Circuit(3, 1779300000), NOON)
        sends.claim_send("one", NOON, 60)
        self.items = everything(client, name)

    def questions(self) -> Questions:
        place = self.client, self.name
        ledger, sweep_store = DynamoAlertLedger(*place), DynamoSweepStore(*place)
        sends, runs = DynamoSendLedger(*place), (("f", "a"), ("g", "b"))
        return {
            **questions(DynamoHistory(*place, clock=lambda: NOON)),
            **{f"alerts {run}": partial(ledger.past_alerts, alert_key(run), f) for f, run in runs},
            **{f"digest_alerts {subject}": partial(ledger.alerts, subject) for subject, _ in runs},
            **{f"watch {run}": partial(ledger.watch_state, alert_key(run)) for _, run in runs},
            **{f"hour {run}": partial(ledger.channel_hour, run, NOON) for _, run in runs},
            **{
                f"event {run}": partial(sweep_store.event_record, alert_key(run)) for _, run in runs
            },
            "lists": sweep_store.swept_regions,
            "members": DynamoMemberRegistry(*place).members,
            "waiting": lambda: list(DynamoMemberRegistry(*place).waiting_events(HOME)),
            "installed": DynamoSweepStore(*place).installed_at,
            "circuit": partial(sends.circuit, "slack"),
            "digest": partial(ledger.has_digest, NOON.date()),
        }

    def with_odd_items(self) -> Iterator[str]:
        """Yields the name of each odd leaf, while it is in the table."""
        read, write = TypeDeserializer().deserialize, TypeSerializer().serialize
        cases = (
            (item, path, value)
            for item in self.items
            for path in paths({name: read(part) for name, part in item.items()})
            if path[0] not in {"pk", "sk"} and not str(path[0]).endswith(("_pk", "_sk"))
            for value in DYNAMO_VALUES
        )
        for item, path, value in some_of(cases, each=STEP):
            whole = {name: read(part) for name, part in item.items()}
            odd = replaced(whole, path, value)
            self._put({name: write(part) for name, part in odd.items()})
            yield f"{item['pk']['S']} {item['sk']['S']} {path} {value!r}"
            self._put(item)

    def _put(self, item: Any) -> None:
        self.client.put_item(TableName=self.name, Item=item)


def test_an_odd_leaf_of_a_table_harms_only_its_item(client: Any, table: str) -> None:
    """Each list goes on and lacks at most one row, and every other item is read as before."""
    filled = Table(client, table)
    before = answers(filled.questions())
    failed = {
        place: harmed
        for place in filled.with_odd_items()
        if (harmed := harm(before, answers(filled.questions())))
    }
    assert failed == {}


SQL_VALUES = (
    *(None, "", "x", "2026-11-20", "9999-12-31T23:59:59.999999Z", "{", "[]", "{}", '{"x": [1]}'),
    *('["x"]', "NaN", -1, 2**62, 0.5, b"x", b"\x1f\x8b\x08"),
)


def odd_files(path: Path, copy: Path, each: int = STEP) -> Iterator[str]:
    """Yields the name of each odd column of a table's first row, while `copy` is such a file."""
    columns = list[tuple[str, str, str]]()
    with closing(sqlite3.connect(path)) as sql:
        for table in schema.TABLE_NAMES:
            described = sql.execute("SELECT name, pk FROM pragma_table_info(?)", [table]).fetchall()
            row_key = ", ".join(name for name, number in described if number) or "rowid"
            columns += [(table, row_key, name) for name, _ in described]
    for (table, row_key, column), value in some_of(product(columns, SQL_VALUES), each=each):
        shutil.copy(path, copy)
        change = (
            f"UPDATE {table} SET {column} = ?"  # noqa: S608 - our own names
            f" WHERE ({row_key}) = (SELECT {row_key} FROM {table} LIMIT 1)"
        )
        with contextlib.suppress(sqlite3.IntegrityError):
            with closing(sqlite3.connect(copy)) as sql, sql:
                sql.execute(change, [value])
            yield f"{table}.{column} = {value!r}"


def test_an_odd_column_of_a_file_harms_only_its_row(tmp_path: Path) -> None:
    """Each list goes on and lacks at most one row, and every other row is read as before."""
    path, copy = tmp_path / "history.db", tmp_path / "copy.db"
    with SqliteHistory(path, clock=lambda: NOON) as history:
        fill(history)
        before = answers(questions(history))
    failed = {}
    for place in odd_files(path, copy, each=11):
        with SqliteHistory(copy, clock=lambda: NOON) as history:
            if harmed := harm(before, answers(questions(history))):
                failed[place] = harmed
    assert failed == {}
