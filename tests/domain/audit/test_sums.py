"""What one audit adds to daily sums, and how sums are added."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.audit.sums import (
    MAX_RULES_BY_NAME,
    OTHERS,
    RuleSums,
    Scope,
    SumRow,
    Sums,
    group_rows,
    storable_usd,
    sum_rows,
    sums_from_document,
)
from sageaudit.domain.bill.bill import UPPER_BOUND
from sageaudit.domain.bill.finding import Bucket
from tests.fakes.entries import document, finding

pytestmark = pytest.mark.money

_TRIAL = finding(saving_usd=None, bucket="possible")

usd = st.integers(-(10**12), 10**12).map(lambda micros: Decimal(micros).scaleb(-6))
counts = st.integers(-5, 5)
rule_sums = st.builds(RuleSums, counts, usd, usd, usd)
sums = st.builds(
    Sums,
    jobs=counts,
    unpriced=counts,
    total_usd=usd,
    judged_usd=usd,
    lost_up_to_usd=usd,
    rules=st.dictionaries(
        st.sampled_from("abc"), rule_sums.filter(lambda of: of != RuleSums()), max_size=3
    ),
)


@given(sums, sums, sums)
def test_sums_are_added_in_any_order(a_sum: Sums, b_sum: Sums, c_sum: Sums) -> None:
    """Each figure is exact to the last decimal."""
    assert a_sum + b_sum == b_sum + a_sum
    assert (a_sum + b_sum) + c_sum == a_sum + (b_sum + c_sum)
    assert (a_sum + b_sum).total_usd == a_sum.total_usd + b_sum.total_usd


@given(sums, sums)
def test_subtracting_a_sum_undoes_its_addition(a_sum: Sums, b_sum: Sums) -> None:
    """Not even a rule of zeros remains, so equal sums compare equal."""
    assert a_sum + Sums() == a_sum
    assert a_sum - a_sum == Sums()
    assert a_sum + b_sum - b_sum == a_sum
    negated = -a_sum
    assert -negated == a_sum
    assert a_sum + -b_sum == a_sum - b_sum


def test_an_audit_adds_itself_once() -> None:
    """It adds its dollars and each rule's share of them."""
    given = document(
        bill={"total_usd": Decimal("4.545")},
        avoidable_usd=Decimal("2.25"),
        lost_usd=Decimal(0),
        lost_up_to_usd=Decimal("4.545"),
        possible_usd=Decimal("0.5"),
        findings=[
            finding("a", saving_usd=Decimal("1.5")),
            finding("b", saving_usd=Decimal("0.75")),
            finding("c", saving_usd=Decimal("0.5"), bucket="possible"),
            finding("d", saving_usd=Decimal(0), bucket="lost"),
        ],
    )
    assert sums_from_document(given) == Sums(
        jobs=1,
        total_usd=Decimal("4.545"),
        judged_usd=Decimal("4.545"),
        avoidable_usd=Decimal("2.25"),
        lost_up_to_usd=Decimal("4.545"),
        possible_usd=Decimal("0.5"),
        rules={
            "a": RuleSums(1, avoidable_usd=Decimal("1.5")),
            "b": RuleSums(1, avoidable_usd=Decimal("0.75")),
            "c": RuleSums(1, possible_usd=Decimal("0.5")),
            "d": RuleSums(1),
        },
    )


@pytest.mark.parametrize("odd", [None, Decimal("NaN"), Decimal("Infinity"), Decimal("1E+40")])
def test_unknown_amounts_add_nothing_and_are_counted(odd: Decimal | None) -> None:
    """The job is counted in `unpriced`, and each unknown amount in a count of its own."""
    result = [finding(saving_usd=odd)]
    amounts: dict[str, Any] = dict.fromkeys(
        ("avoidable_usd", "lost_usd", "possible_usd", "idle_capacity")
    )
    given = document(bill={"total_usd": odd}, findings=result, **amounts)
    assert sums_from_document(given) == Sums(
        jobs=1,
        unpriced=1,
        avoidable_unknown=1,
        lost_unknown=1,
        possible_unknown=1,
        idle_unknown=1,
        rules={"gpu-underused": RuleSums(1, avoidable_unknown=1)},
    )


def test_a_share_of_an_unknown_sum_adds_nothing() -> None:
    """The shares of the rules never exceed the sums of the audits."""
    given = document(avoidable_usd=None, findings=[finding(saving_usd=Decimal(1))])
    assert sums_from_document(given).rules == {"gpu-underused": RuleSums(1, avoidable_unknown=1)}


@pytest.mark.parametrize(
    ("bucket", "saving", "sums"),
    [
        ("avoidable", "0", RuleSums(1, avoidable_range_usd=Decimal("4.09"))),
        ("avoidable", "1.50", RuleSums(1, avoidable_usd=Decimal("1.50"))),
        ("lost", "0", RuleSums(1, lost_range_usd=Decimal("4.09"))),
        ("none", "0", RuleSums(1)),
    ],
)
def test_the_end_of_a_range_counts_if_nothing_else_of_it_does(
    bucket: str, saving: str, sums: RuleSums
) -> None:
    """As every view shows a finding: "up to $4.09", or what counts alone."""
    span = [Decimal(saving), Decimal("4.09")]
    result = [finding(saving_usd=Decimal(saving), saving_range_usd=span, bucket=bucket)]
    assert sums_from_document(document(findings=result)).rules == {"gpu-underused": sums}


def test_a_sum_of_unknown_amounts_is_not_0() -> None:
    """If something is known, that is the sum, and counts show that it is a lower bound."""
    unknown = sums_from_document(
        document(bill={"total_usd": None}, avoidable_usd=None, lost_usd=None)
    )
    assert (unknown.known_total_usd, unknown.known_avoidable_usd) == (None, None)
    assert (unknown + unknown).known_lost_usd is None
    both = unknown + sums_from_document(document(findings=[finding(saving_usd=Decimal("1.5"))]))
    assert (both.known_avoidable_usd, both.avoidable_unknown) == (Decimal("1.5"), 1)
    rule = (unknown + unknown).rules["gpu-underused"]
    assert (rule.known_usd(Bucket.AVOIDABLE), rule.max_usd(Bucket.AVOIDABLE)) == (None, None)
    assert both.rules["gpu-underused"].known_usd(Bucket.AVOIDABLE) == Decimal("1.5")


@pytest.mark.parametrize(
    ("changes", "counted"),
    [
        ({"judged": "no"}, {"not_judged": 1}),
        ({"judged": "partly"}, {"partly_judged": 1}),
        ({"judged": None}, {}),
        ({"bill": {"missing": ["no storage price"]}}, {"incomplete": 1}),
        ({"bill": {"missing": [UPPER_BOUND], "basis": "upper_bound"}}, {"upper_bounds": 1}),
        ({"bill": {"missing": ["a guess"], "estimated": ["a guess"]}}, {"estimated": 1}),
        (
            {"unauditable": "gone", "bill": {"total_usd": None}, "possible_usd": Decimal(0)},
            {"unauditable": 1},
        ),
        (
            {"idle_capacity": {"idle": 3, "list_usd": None, "counted_usd": None}},
            {"idle_unknown": 1},
        ),
        ({"idle_capacity": {"idle": 0, "list_usd": None, "counted_usd": None}}, {}),
        ({"idle_capacity": None}, {"idle_unknown": 1}),
        ({"idle_capacity": None, "bill": {"total_usd": Decimal(0)}}, {}),
        (
            {"idle_capacity": None, "bill": {"total_usd": Decimal(0), "basis": "prepaid"}},
            {"idle_unknown": 1},
        ),
        ({"possible_usd": None}, {"possible_unknown": 1}),
        ({"findings": [_TRIAL]}, {"possible_unknown": 1}),
        ({"findings": [_TRIAL | {"saving_usd": Decimal(0)}]}, {}),
        ({"findings": [_TRIAL | {"superseded_by": "gpu-idle"}]}, {}),
    ],
)
def test_uncertain_audits_are_counted(changes: Any, counted: dict[str, int]) -> None:
    """A reader sees for how many audits a figure is incomplete or uncertain."""
    sums = sums_from_document(document(**changes))
    names = (
        "unauditable",
        "not_judged",
        "partly_judged",
        "incomplete",
        "estimated",
        "upper_bounds",
        "possible_unknown",
        "idle_unknown",
    )
    assert {name: getattr(sums, name) for name in names if getattr(sums, name)} == counted


def test_judged_spend_has_its_own_sum() -> None:
    """It has the jobs that were judged in whole or in part."""
    spent: Any = {"bill": {"total_usd": Decimal(3)}}
    sums = [
        sums_from_document(document(judged=how, **spent)) for how in ("yes", "partly", "no", None)
    ]
    assert [item.judged_usd for item in sums] == [3, 3, 0, 0]
    assert sum(sums, Sums()).total_usd == 12


def test_idle_capacity_is_summed_separately() -> None:
    """The part that other sums already contain is known."""
    idle = {"idle": 3, "list_usd": Decimal("1.5"), "counted_usd": Decimal("0.25")}
    sums = sums_from_document(document(idle_capacity=idle))
    assert (sums.idle_usd, sums.idle_counted_usd) == (Decimal("1.5"), Decimal("0.25"))


def test_findings_that_do_not_stand_are_not_counted() -> None:
    """These are exempt findings, and those that another finding replaces."""
    result = [
        finding("a", exempt={"by": "tag", "until": None, "reason": "x"}),
        finding("b", superseded_by="c"),
        finding("c"),
    ]
    assert set(sums_from_document(document(findings=result)).rules) == {"c"}


def test_a_roll_up_adds_the_findings_of_its_own() -> None:
    """Its children's jobs, dollars and findings are in their own audits."""
    result = [
        finding("idle-tail", saving_usd=Decimal(9)),
        finding("trials-fail", saving_usd=Decimal("2.5"), bucket="lost"),
    ]
    given = document(
        rollup=True, rollup_rules=["trials-fail"], findings=result, lost_usd=Decimal("2.5")
    )
    assert sums_from_document(given) == Sums(
        lost_usd=Decimal("2.5"),
        lost_up_to_usd=Decimal("2.5"),
        rules={"trials-fail": RuleSums(1, lost_usd=Decimal("2.5"))},
    )
    assert sums_from_document(document(rollup=True, findings=result)) == Sums()


def test_rules_beyond_the_maximum_are_added_together() -> None:
    """So an item stays small for any audit, and no dollar is lost."""
    result = [
        finding(f"rule-{number}", saving_usd=Decimal(1)) for number in range(MAX_RULES_BY_NAME + 5)
    ]
    sums = sums_from_document(
        document(findings=result, avoidable_usd=Decimal(MAX_RULES_BY_NAME + 5))
    )
    assert len(sums.rules) == MAX_RULES_BY_NAME + 1
    assert sums.rules[OTHERS] == RuleSums(5, avoidable_usd=Decimal(5))
    assert sum(rule.avoidable_usd for rule in sums.rules.values()) == sums.avoidable_usd


def test_rows_are_added_by_any_key() -> None:
    """By name, by day, or all of them."""
    rows = [
        SumRow(Scope.FAMILY, "1", "r", name, date(2026, 11, day), Sums(jobs=1))
        for name, day in (("a", 1), ("b", 1), ("a", 2))
    ]
    assert sum_rows(rows) == Sums(jobs=3)
    assert group_rows(rows, lambda row: row.name) == {"a": Sums(jobs=2), "b": Sums(jobs=1)}
    assert list(group_rows(rows, lambda row: row.day).values()) == [Sums(jobs=2), Sums(jobs=1)]


def test_a_storable_amount_has_six_decimals() -> None:
    """The table and the document have the same precision."""
    assert str(storable_usd(Decimal("1.23456789"))) == "1.234568"
