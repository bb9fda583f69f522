"""What holds for any order and number of deliveries."""

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import AuditEntry, RecordOutcome, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.ports import History
from sageaudit.structs import replace
from tests.fakes.entries import entry, finding, key, unsettled_entry

RULES = ("r1", "r2")


def state(second: int, content: int, *, settled: bool) -> AuditEntry:
    """What an audit says of one state of the job: same content, same document."""
    make = entry if settled else unsettled_entry
    rules = RULES[: content % 3]
    return make(
        modified_s=second,
        avoidable_usd=Decimal(content),
        findings=[finding(rule) for rule in rules],
    )


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[AuditEntry], list[AuditEntry]]:
    """Two orders of one set, with repetitions; a state has one first look and one settled one."""
    states = st.dictionaries(st.integers(0, 3), st.sets(st.booleans(), min_size=1), min_size=1)
    entries = [
        state(second, draw(st.integers(0, 2)), settled=settled)
        for second, looks in draw(states).items()
        for settled in looks
    ]
    repeated = entries + draw(st.lists(st.sampled_from(entries), max_size=5))
    return draw(st.permutations(entries)), draw(st.permutations(repeated))


def ended_at(
    history: History, order: list[AuditEntry]
) -> tuple[AuditSummary | None, list[bool], int]:
    """Where deliveries end: the head without its number, whose findings, how many versions."""
    versions = [history.record(entry).outcome for entry in order].count(RecordOutcome.RECORDED)
    head = history.summary(key())
    found = [bool(list(history.runs(RunQuery.for_rule(rule)))) for rule in RULES]
    assert head is not None
    assert head.version == versions
    assert history.audit(key(), versions) is not None
    assert history.audit(key(), versions + 1) is None
    return replace(head, version=0), found, versions


@settings(max_examples=100, deadline=None)
@given(deliveries())
def test_order_and_number_of_deliveries_do_not_matter(
    orders: tuple[list[AuditEntry], list[AuditEntry]],
) -> None:
    """Any order with any repetition ends with the same head, and no more versions than audits."""
    once, often = orders
    first, second = ended_at(SqliteHistory(), once), ended_at(SqliteHistory(), often)
    assert first[:2] == second[:2]
    assert max(first[2], second[2]) <= len(once)
