"""The cards of what to change first: equal changes of families together, possible dollars apart."""

import re
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest

from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.output.html.account import account_body
from sageaudit.output.html.cards import change_cards
from sageaudit.output.html.contents import MAX_CARD_FAMILIES, AccountReport
from sageaudit.output.html.markup import join
from sageaudit.structs import replace
from tests.fakes import documents
from tests.fakes.documents import fix
from tests.fakes.entries import entry_of
from tests.fakes.families import run_summary
from tests.fakes.reports import (
    FIRST,
    HOSTILE,
    FamilyRuns,
    families_report,
    grouped_report,
    report_of,
)

SMALLER = fix("ResourceConfig.InstanceType", "ml.p3.2xlarge", "ml.g4dn.4xlarge")
OTHER = fix("ResourceConfig.InstanceType", "ml.p3.2xlarge", "ml.g5.xlarge")
SPOT = fix("EnableManagedSpotTraining", old=False, new=True)


def cards_of(report: AccountReport) -> list[str]:
    """Returns the text of each card."""
    markup = change_cards(report) or ""
    cards = re.findall(r'<article class="card">.*?</article>', markup, re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]+>", "", card)).split()) for card in cards]


def family(
    name: str,
    usd: str | None,
    *fixes: FixDocument,
    rule: str = "old-generation",
    runs: int = 1,
    **changes: Any,
) -> FamilyRuns:
    """Returns a family; `changes`: keys of its finding."""
    amount = None if usd is None else Decimal(usd)
    return FamilyRuns(f"training/{name}", rule, amount, fixes, runs, changes)


def test_a_card_links_to_the_run_with_its_finding() -> None:
    """A more wasteful run of another region has the same name."""
    entries = []
    for region, amounts in (("us-east-1", (6, 4)), ("eu-west-1", (7,))):
        job = {
            "arn": f"arn:aws:sagemaker:{region}:111122223333:training-job/a",
            "family": "training/a",
            "region": region,
            "created_at": FIRST - timedelta(hours=2),
            "ended_at": FIRST,
        }
        findings = [
            documents.finding(rule, saving_usd=Decimal(usd), fix=[SMALLER], alternatives=[])
            for rule, usd in zip(("old-generation", "cheaper-type"), amounts, strict=False)
        ]
        audit = documents.document(job=job, findings=findings)
        entries.append(
            entry_of(audit, run_summary(instance_type="ml.p3.2xlarge", instance_count=1))
        )
    report = report_of(entries, days=5)
    [change] = report.top_changes
    assert ":eu-west-1:" in change.example.fix.key.arn
    assert report.summaries[change.example.summary_index].key == change.example.fix.key


def test_one_change_of_several_families_is_one_card() -> None:
    """Its dollars are the sum of the families', each of which is listed with its own."""
    [card, *_] = cards_of(grouped_report())
    assert card.startswith("ml.p3.2xlarge → ml.g4dn.4xlarge in 14 families$16.94 avoidable")
    assert card.count(": $1.21, in 1 of 1 job") == 14
    assert 'instance_type="ml.g4dn.4xlarge"' in card
    assert "old-generation: The instances are of an old generation" in card
    assert "(14 of 14 jobs)" in card


def test_cards_are_ordered_by_the_sums_of_their_families() -> None:
    """Two small families with one change come before a larger family alone."""
    rows = [family("a", "6", SMALLER), family("b", "5", SMALLER), family("c", "9", OTHER)]
    cards = cards_of(families_report(rows))
    assert [card.partition(" avoidable")[0] for card in cards] == [
        "ml.p3.2xlarge → ml.g4dn.4xlarge in 2 families$11.00",
        "ml.p3.2xlarge → ml.g5.xlargetraining/c$9.00",
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((SMALLER,), (OTHER,)),
        ((SMALLER,), (SMALLER, SPOT)),
        ((SMALLER,), (fix("ResourceConfig.InstanceType", "ml.p3.8xlarge", "ml.g4dn.4xlarge"),)),
        ((), ()),
    ],
    ids=["another new value", "one more parameter", "another old value", "no parameter"],
)
def test_other_changes_have_their_own_cards(
    first: Sequence[FixDocument], second: Sequence[FixDocument]
) -> None:
    """The code of a card is then right for each of its families."""
    cards = cards_of(families_report([family("a", "6", *first), family("b", "5", *second)]))
    assert len(cards) == 2


def test_a_rule_without_a_parameter_has_its_own_words_as_headline() -> None:
    """The rule's name follows below, without the same words again."""
    step = "Do this. - First one. - Then another"
    [card] = cards_of(families_report([family("a", "6", rule="idle-tail", first_step=step)]))
    assert card.startswith("The instances are idle after their work is donetraining/a$6.00")
    assert "First step: Do this.First one.Then another." in card
    assert card.count("The instances are idle") == 1


def test_a_first_step_comes_before_the_code() -> None:
    """The card has both."""
    [card] = cards_of(families_report([family("a", "6", SMALLER, first_step="Look first")]))
    assert "First step: Look first.sdk-v3ModelTrainer(" in card


@pytest.mark.parametrize(
    ("families", "amount"),
    [
        ([family("a", "6", SMALLER), family("b", "5", SMALLER, estimated=True)], "about $11.00"),
        ([family("a", "6", SMALLER, runs=4), family("b", "5", SMALLER, runs=2)], "about $34"),
        ([family("a", "6", SMALLER, runs=4), family("b", "5", SMALLER)], "$29.00"),
    ],
    ids=["estimated", "a month", "no month with a single run"],
)
def test_a_sum_keeps_how_exactly_it_is_known(families: list[FamilyRuns], amount: str) -> None:
    """Thirty days are a month, but not for a family with one run, which may never come again."""
    [card] = cards_of(families_report(families))
    assert f"in 2 families{amount} avoidable" in card


def test_a_sum_with_an_unknown_part_is_a_lower_bound() -> None:
    """So is that of the family which has the unknown part."""
    rows = [family("a", "6", SMALLER), family("b", "5", SMALLER)]
    [card] = cards_of(with_unknown(families_report(rows)))
    assert "in 2 families$11.00 or more avoidable" in card
    assert "training/a: $6.00 or more, in 2 of 1 job" in card
    assert "training/b: $5.00, in 1 of 1 job" in card


def with_unknown(report: AccountReport) -> AccountReport:
    """Returns the report with one more finding, whose dollars are unknown."""
    [columns, *others] = report.column_sums
    sums = dict(columns.sums)
    rules = dict(sums["training/a"].rules)
    rule = rules["old-generation"]
    rules["old-generation"] = replace(rule, findings=rule.findings + 1, avoidable_unknown=1)
    sums["training/a"] = replace(sums["training/a"], rules=rules)
    return replace(report, column_sums=[replace(columns, sums=sums), *others])


def test_possible_dollars_have_a_card_if_they_are_more_than_what_is_counted() -> None:
    """It is the last one. The two kinds are never added, and the tile says it too."""
    report = grouped_report()
    cards = cards_of(report)
    assert cards[-1].startswith("EnableManagedSpotTraining: false → true")
    assert "about $2,700 may be saved a month" in cards[-1]
    assert "Worth a trial run; in no total." in cards[-1]
    assert "more than what is counted" in join(account_body(report))


@pytest.mark.parametrize(("usd", "is_shown"), [("99", True), ("14", False)])
def test_three_counted_changes_leave_a_place_for_more_possible_dollars(
    usd: str, *, is_shown: bool
) -> None:
    """Otherwise the third card is the third counted change."""
    others = [fix("ResourceConfig.VolumeSizeInGB", size, 30) for size in (100, 200, 300)]
    counted = [family(f"f{index}", "5", other) for index, other in enumerate(others)]
    cards = cards_of(families_report([*counted, family("spot", usd, SPOT, rule="spot-not-used")]))
    assert len(cards) == 3
    assert ("may be saved" in cards[-1]) is is_shown
    assert cards[0].startswith("VolumeSizeInGB: 100 → 30")


def test_the_card_has_the_caveat_of_most_families() -> None:
    """If families have different ones, it says how many have this one, and lists the others."""
    slower = "The saving assumes that a run takes 1.29 times as long. It may be more."
    [same] = cards_of(families_report([family("a", "6", SMALLER, caution=slower)]))
    assert "Caveat: It runs 1.29 times as long." in same
    rows = [
        family("a", "6", SMALLER, caution=None),
        family("b", "5", SMALLER, caution=slower),
        family("c", "4", SMALLER, caution=None),
    ]
    [mixed] = cards_of(families_report(rows))
    assert "Caveat in 1 of 3 families: It runs 1.29 times as long." in mixed
    assert "$5.00, in 1 of 1 job. It runs 1.29 times as long." in mixed
    [none] = cards_of(families_report([family("a", "6", SMALLER, caution=None)]))
    assert "Caveat" not in none


def test_equal_changes_are_searched_in_the_most_wasteful_families() -> None:
    """The page says if there are more."""
    rows = [family(f"f{index}", "1", SMALLER) for index in range(MAX_CARD_FAMILIES + 1)]
    text = change_cards(families_report(rows)) or ""
    assert "At most 100 of 101 families are in the cards, those with the most dollars." in text
    assert "in 100 families" in text
    assert "At most" not in (change_cards(families_report(rows[1:])) or "")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_values_stay_short_text(text: str) -> None:
    """A value of any length fits into the headline."""
    report = families_report([family("a", "6", fix(f"Environment.{text}", text, text))])
    values = re.findall(r'<span class="value">(.*?)</span>', change_cards(report) or "")
    assert len(values) == 2
    for value in values:
        assert len(unescape(value)) <= 40
        assert "<" not in value


def test_a_period_without_findings_has_no_cards() -> None:
    """The page has no empty section."""
    assert change_cards(families_report([])) is None
