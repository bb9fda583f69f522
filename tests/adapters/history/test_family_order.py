"""Audits of a family that were made without a run which ended before them become due, once."""

from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

import pytest

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.domain.audit.record import MAX_EARLIER_RUNS, AuditEntry, RecordOutcome, RunQuery
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.job import Purchase
from sageaudit.ports import History
from sageaudit.structs import replace
from tests.adapters.history.faults import Killed, everything, kill, meanwhile
from tests.fakes.capacity import item_bytes, measure_capacity
from tests.fakes.documents import ACCOUNT, REGION
from tests.fakes.entries import DETAIL, NOON, entry_ending_at, finding, key, summary_of, with_detail
from tests.fakes.entries import due_audits as waiting
from tests.fakes.families import run_summary

FAMILY = "training/resnet"
FACTS = run_summary(purchase=Purchase.ON_DEMAND, elapsed_s=Decimal(600))
LATER = NOON + timedelta(days=1)


def at(hour: int) -> datetime:
    """The end of the run of this hour."""
    return NOON + timedelta(hours=hour)


def audited(history: History, hour: int, **changes: Any) -> AuditEntry:
    """The audit of a run, by what the history knows now."""
    facts = changes.pop("facts", FACTS)
    again = changes.pop("again", False)
    query = RunQuery.for_family(ACCOUNT, REGION, FAMILY)
    number = changes.pop("compared", MAX_EARLIER_RUNS)
    heads = tuple(islice(history.runs(query, ended_before=at(hour)), number))
    entry = entry_ending_at(f"run-{hour}", at(hour), **changes)
    return replace(entry, run_summary=facts, earlier_runs=heads, force_new_version=again)


def check(history: History, hour: int, due_at: datetime = LATER) -> tuple[JobKey, ...]:
    """What is done after a run was recorded."""
    return history.recheck_family(
        key(f"run-{hour}"),
        account=ACCOUNT,
        region=REGION,
        family=FAMILY,
        ended_at=at(hour),
        due_at=due_at,
    )


def record(history: History, hour: int, **changes: Any) -> tuple[JobKey, ...]:
    """Audits, records and checks one run."""
    history.record(audited(history, hour, **changes))
    return check(history, hour)


def due(history: History) -> set[str]:
    """The names of the runs that are due."""
    return {head.job for head in waiting(history, LATER)}


def test_runs_audited_in_the_order_of_their_ends_are_never_due(history: History) -> None:
    """The usual case: nothing is found, and nothing is written."""
    assert [record(history, hour) for hour in range(4)] == [()] * 4
    assert not due(history)


def test_a_late_audit_makes_those_after_it_due(history: History) -> None:
    """Not those before it, not another family's, and each of them once."""
    for hour in (0, 2, 3):
        record(history, hour)
    other = replace(
        entry_ending_at("other", at(4), job={"family": "training/bert"}), run_summary=FACTS
    )
    history.record(replace(other, earlier_runs=()))
    assert record(history, 1) == (key("run-2"), key("run-3"))
    assert due(history) == {"run-2", "run-3"}
    assert check(history, 1, LATER + timedelta(hours=1)) == (key("run-2"), key("run-3"))
    heads = [history.summary(key(f"run-{hour}")) for hour in range(4)]
    assert [head and head.due_at for head in heads] == [None, None, LATER, LATER]
    assert [head and head.settled for head in heads] == [True] * 4


def test_a_second_look_ends_it(history: History) -> None:
    """Also where it says the same: no new version then, and the check finds nothing any more."""
    for hour in (0, 2, 3, 1):
        record(history, hour)
    same = history.record(audited(history, 2, again=True))
    assert (same.outcome, same.version) == (RecordOutcome.DUPLICATE, 1)
    other = history.record(audited(history, 3, again=True, findings=[finding("r")]))
    assert (other.outcome, other.version) == (RecordOutcome.RECORDED, 2)
    assert not due(history)
    assert [check(history, hour) for hour in range(4)] == [()] * 4


def test_a_run_that_was_missed_while_it_was_judged_makes_it_due(history: History) -> None:
    """The other was recorded between its reading of the family and its own record."""
    judged = audited(history, 2)
    record(history, 1)
    history.record(judged)
    assert check(history, 2) == (key("run-2"),)
    assert due(history) == {"run-2"}


def test_a_delivery_that_stopped_before_the_check_is_made_up_for(history: History) -> None:
    """The same message again records nothing, and its check finds the same."""
    record(history, 2)
    late = audited(history, 1)
    history.record(late)
    assert not due(history)
    assert history.record(late).outcome is RecordOutcome.DUPLICATE
    assert check(history, 1) == (key("run-2"),)
    assert due(history) == {"run-2"}


def test_only_what_rules_compare_makes_later_runs_due(history: History) -> None:
    """A new version with other findings does not; one with another duration does."""
    record(history, 1)
    record(history, 2)
    assert record(history, 1, modified_s=60, findings=[finding("r")]) == ()
    longer = replace(FACTS, elapsed_s=Decimal(700))
    assert record(history, 1, modified_s=120, facts=longer) == (key("run-2"),)


def test_an_audit_that_is_due_earlier_stays_so(history: History) -> None:
    """The end of a warm pool comes before."""
    pool_ends = at(3).isoformat().replace("+00:00", "Z")
    record(history, 2, audit={"settled": False, "due_at": pool_ends})
    record(history, 1)
    head = summary_of(history, "run-2")
    assert head.due_at == at(3)


def test_runs_that_ended_at_one_moment_do_not_see_each_other(history: History) -> None:
    """In no order of their audits: neither ended before the other."""
    for name in ("a", "b"):
        query = RunQuery.for_family(ACCOUNT, REGION, FAMILY)
        heads = tuple(history.runs(query, ended_before=at(1)))
        history.record(replace(entry_ending_at(name, at(1)), run_summary=FACTS, earlier_runs=heads))
        assert not history.recheck_family(
            key(name), account=ACCOUNT, region=REGION, family=FAMILY, ended_at=at(1), due_at=LATER
        )


def test_a_run_without_facts_concerns_no_other(history: History) -> None:
    """A job that could not be audited is compared with none."""
    record(history, 2)
    history.record(replace(audited(history, 1), run_summary=None))
    assert check(history, 1) == ()


def test_a_run_that_leaves_its_family_leaves_no_row(history: History) -> None:
    """After a change of the policy it is judged, and compared, in another family."""
    record(history, 1)
    moved = {"family": "training/bert"}
    history.record(audited(history, 1, job=moved, again=True))
    record(history, 2)
    history.record(audited(history, 1, job=moved, again=True, findings=[finding("r")]))
    assert check(history, 1) == ()
    assert check(history, 2) == ()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many runs are compared, in place of 50."""
    for module in (
        "adapters.history.dynamo.history",
        "adapters.history.sqlite.history",
        "adapters.history.record_steps",
    ):
        monkeypatch.setattr(f"sageaudit.{module}.MAX_EARLIER_RUNS", 3)
    return 3


def test_a_late_audit_reaches_as_far_as_runs_are_compared(history: History, few: int) -> None:
    """Those after it: for the next one, it is not among the last that are compared."""
    for hour in range(1, few + 4):
        record(history, hour, compared=few)
    found = record(history, 0, compared=few)
    assert found == tuple(key(f"run-{hour}") for hour in range(1, few + 1))
    for hour in range(1, few + 1):
        history.record(audited(history, hour, again=True, compared=few))
        assert check(history, hour) == ()
    assert not due(history)


def test_a_check_that_is_killed_midway_is_done_by_the_next(
    client: Any, dynamo: DynamoHistory
) -> None:
    """Each audit becomes due by itself."""
    for hour in (2, 3):
        record(dynamo, hour)
    dynamo.record(audited(dynamo, 1))
    with meanwhile(client, "after-call UpdateItem", kill), pytest.raises(Killed):
        check(dynamo, 1)
    assert due(dynamo) == {"run-2"}
    assert check(dynamo, 1) == (key("run-2"), key("run-3"))
    assert due(dynamo) == {"run-2", "run-3"}


def test_a_large_family_is_read_in_bounds(client: Any, dynamo: DynamoHistory, few: int) -> None:
    """Two queries, of the run and as many rows as are compared; nothing is written."""
    for hour in range(few + 3):
        dynamo.record(audited(dynamo, hour, compared=few))
    with measure_capacity(client) as cost:
        assert check(dynamo, few + 2) == ()
    assert (cost.requests, cost.items) == (2, 1 + few)


def test_a_row_is_small_and_expires_with_the_detail(
    client: Any, table: str, dynamo: DynamoHistory
) -> None:
    """With 50 runs before it, it has under 1 KB: one write unit."""
    dynamo.record(with_detail(audited(dynamo, 0), DETAIL))
    [before] = dynamo.runs(RunQuery.for_family(ACCOUNT, REGION, FAMILY))
    judged = replace(audited(dynamo, 1), earlier_runs=(before,) * MAX_EARLIER_RUNS)
    dynamo.record(with_detail(judged, DETAIL))
    items = everything(client, table)
    rows = [item for item in items if item["pk"]["S"].startswith("RUNS#")]
    assert max(len(item["compared"]["S"]) for item in rows) == 8 * MAX_EARLIER_RUNS
    assert max(item_bytes(item) for item in rows) < 1_024
    [expiry] = {item["expires_at"]["N"] for item in items if "expires_at" in item}
    assert {item["expires_at"]["N"] for item in rows} == {expiry}
