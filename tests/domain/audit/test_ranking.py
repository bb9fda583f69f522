"""The ranking adds up to the daily sums, and shows what to change first."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.domain.audit.ranking import RankedName, Ranking, family_fix, ranking
from sageaudit.domain.audit.sums import RuleSums, Scope, SumRow, Sums, add_sums, sum_rows
from tests.fakes.documents import document, finding
from tests.fakes.entries import entry_of

DAY = date(2026, 11, 10)
NOON = datetime(2026, 11, 10, 12, tzinfo=UTC)


def row(name: str | None, region: str = "eu-west-1", **sums: Any) -> SumRow:
    """Returns the sums of one day of a family, owner or type."""
    amounts: dict[str, Any] = {
        key: Decimal(value) if key.endswith("usd") else value for key, value in sums.items()
    }
    return SumRow(Scope.FAMILY, "111122223333", region, name, DAY, Sums(**amounts))


def ranked(rows: Iterable[SumRow], shown: int = 10) -> Ranking:
    """Returns a ranking in which every scope has these rows. Families have no fixes."""
    kept = list(rows)
    return ranking(lambda _: kept, DAY, DAY, lambda _: None, shown)


def test_names_are_ranked_by_savings_and_then_by_cost() -> None:
    """Lost dollars count like avoidable ones. Possible ones only decide between equal names."""
    result = ranked(
        [
            row("dear", jobs=1, total_usd=900),
            row("lost", jobs=1, total_usd=10, lost_usd=9),
            row("saved", jobs=1, total_usd=20, avoidable_usd=8, possible_usd=1),
            row("cheap", jobs=1, total_usd=1, possible_usd=500),
        ]
    )
    names = [item.family.name for item in result.families]
    assert names == ["lost", "saved", "dear", "cheap"]


def test_a_family_in_two_regions_is_one_row() -> None:
    """The row has both regions. Jobs without an owner have a row, too."""
    rows = [row("a", jobs=1), row("a", "us-east-1", jobs=2), row(None, jobs=3)]
    result = ranked(rows)
    assert [
        (item.family.name, [at for _, at in item.family.account_regions])
        for item in result.families
    ] == [
        (None, ["eu-west-1"]),
        ("a", ["eu-west-1", "us-east-1"]),
    ]
    assert {item.name: item.sums.jobs for item in result.owners.shown_names} == {"a": 3, None: 3}


def test_some_names_are_shown_and_all_are_counted() -> None:
    """The total includes the names that are not shown."""
    result = ranked([row(f"f{n}", jobs=1, total_usd=n) for n in range(30)], shown=3)
    assert [item.family.name for item in result.families] == ["f29", "f28", "f27"]
    assert (result.family_count, result.owners.name_count, result.total.jobs) == (30, 30, 30)


USD = st.integers(0, 10**12).map(lambda micro: Decimal(micro).scaleb(-6))
SUMS = st.builds(
    lambda jobs, usd, saved, rule: Sums(
        jobs=jobs,
        total_usd=usd,
        avoidable_usd=saved,
        rules={rule: RuleSums(1, avoidable_usd=saved)},
    ),
    *(st.integers(0, 5), USD, USD, st.sampled_from(["gpu-idle", "old-generation"])),
)
ROW = st.builds(
    SumRow,
    scope=st.just(Scope.FAMILY),
    account=st.just("111122223333"),
    region=st.sampled_from(["eu-west-1", "us-east-1"]),
    name=st.sampled_from(["a", "b", "c", None]),
    day=st.dates(DAY, DAY + timedelta(days=3)),
    sums=SUMS,
)
ROWS = st.lists(ROW, max_size=8)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ROWS)
def test_every_list_adds_up_to_the_total(rows: list[SumRow]) -> None:
    """To the microdollar, in any order of the history's rows."""
    result = ranked(rows)
    assert result.total == sum_rows(rows)
    assert sum((item.family.sums for item in result.families), Sums()) == result.total
    assert sum((item.sums for item in result.types.shown_names), Sums()) == result.total
    assert sum((sums for _, sums in result.rules), RuleSums()) == sum(
        result.total.rules.values(), RuleSums()
    )
    assert ranked(reversed(rows)) == result


def audited(name: str, hours: int, *findings: FindingDocument, **totals: Any) -> AuditDocument:
    """Returns an audit of a run that ended `hours` hours after NOON."""
    run = {"name": name, "created_at": NOON, "ended_at": NOON + timedelta(hours=hours)}
    return document(job=run, findings=list(findings), **totals)


def fix_of(*documents: AuditDocument) -> Any:
    """Returns the family's fix from a history with these audits."""
    history = SqliteHistory()
    entries = [entry_of(audit) for audit in documents]
    for entry in entries:
        history.record(entry)
    heads = [head for entry in entries if (head := history.summary(entry.key))]
    newest_first = sorted(heads, key=lambda head: head.ended_at, reverse=True)
    return family_fix(add_sums([head.sums for head in heads]), newest_first, history.audit)


def test_the_fix_is_that_of_the_newest_of_the_most_expensive_runs() -> None:
    """A newer run with a smaller saving is not read."""
    some = {"avoidable_usd": Decimal(3), "lost_usd": Decimal(0)}
    less = finding(saving_usd=Decimal("0.1"))
    runs = [audited("a", 1, finding(), **some), audited("b", 2, finding(), **some)]
    result = fix_of(*runs, audited("c", 3, less, **some))
    assert result.job == "b"
    assert result.finding["fix"] == finding()["fix"]


def test_the_largest_standing_counted_finding_gives_the_fix() -> None:
    """A replaced finding gives none; a possible saving gives one only if nothing is counted."""
    possible = finding(rule="spot-not-used", bucket="possible", saving_usd=Decimal(50))
    replaced = finding(rule="gpu-idle", saving_usd=Decimal(9), superseded_by="gpu-underused")
    counted = finding(rule="gpu-underused", saving_usd=Decimal(2))
    assert fix_of(audited("a", 1, possible, replaced, counted)).finding["rule"] == "gpu-underused"
    assert fix_of(audited("a", 1, possible, replaced)).finding["rule"] == "spot-not-used"
    assert fix_of(audited("a", 1, replaced)) is None
    assert fix_of() is None


def test_a_roll_up_gives_no_fix_of_its_own() -> None:
    """Its training jobs do."""
    assert fix_of(audited("a", 1, finding(), rollup=True)) is None


def test_names_without_a_sum_are_left_out() -> None:
    """A roll-up without findings of its own adds nothing."""
    assert ranked([row("a")]).families == ()
    assert RankedName("a", (), Sums()) not in ranked([row("a")]).owners.shown_names
