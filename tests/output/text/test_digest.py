"""The digest on a phone: normal and empty weeks, one with a large growth, and every service."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from textwrap import wrap

import pytest

from sageaudit.adapters.channels.services import SERVICES
from sageaudit.domain.advice.advice import FamilyRecommendation, Silence, State
from sageaudit.domain.advice.comparison import Comparison, Effect
from sageaudit.domain.advice.totals import Digest
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.audit.sums import ChangedFamily, Sums
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.budgets import Budget
from sageaudit.domain.policy.routes import Route
from sageaudit.output.text.card import ROW_WIDTH, row_count
from sageaudit.output.text.digest import DIGEST_ROWS, DigestReport, digest_card
from sageaudit.output.text.links import Link
from sageaudit.output.text.plain import make_payload
from sageaudit.structs import replace
from tests.fakes.budgets import month_of
from tests.fakes.hostile import ATTACKS

NOW = datetime(2026, 11, 23, 8, tzinfo=UTC)
SNOOZED = Silence("snoozed", "ana", None, None)
REPORT = DigestReport(Link("Report", "https://us-east-1.console.aws.amazon.com/s3/object/b?x=y"))


def recommendation(
    family: str, usd: int, state: State = State.OPEN, *, days: int = 20
) -> FamilyRecommendation:
    """Returns a recommendation that is `days` old and whose newest run was yesterday."""
    began, yesterday = NOW - timedelta(days=days), NOW - timedelta(days=1)
    return FamilyRecommendation(
        id=f"{family.replace('-', '')}abcdefgh"[:8],
        account="111122223333",
        region="us-east-1",
        family=f"training/pytorch/train.py/{family}",
        owner=None,
        rule="gpu-underused",
        parameter="ResourceConfig.InstanceType",
        old=None,
        new="ml.g6e.4xlarge",
        state=state,
        severity=Severity.LOW,
        amount_kind=AmountKind.COUNTED,
        amount=Decimal(usd),
        occurrences=((yesterday, Decimal(usd)),),
        all_amounts=(Decimal(usd),),
        appearances=1,
        first_at=began,
        since=began,
        last_at=yesterday,
    )


def followed(family: str, effect: Effect, state: State) -> FamilyRecommendation:
    """Returns a recommendation that was followed in six runs, each of which then cost $14 less."""
    comparison = Comparison(effect, "", 6, Decimal(16), Decimal(30), Decimal(16))
    return replace(recommendation(family, 0, state), comparison=comparison)


OPEN = tuple(
    recommendation(name, usd, days=days)
    for name, usd, days in (
        *(("nlp-finetune", 540, 20), ("ranker", 210, 90), ("speech-asr-large", 120, 61)),
        *(("old-embedder", 40, 20), ("churn", 22, 20), ("never-shown", 9, 20)),
    )
)
CHANGED = tuple(
    ChangedFamily(f"training/{name}", word, Decimal(usd), Sums(), Sums())
    for name, word, usd in (
        *(("nlp-finetune", "increased", "120.50"), ("nightly-features", "decreased", "-88.39")),
        *(("tile-classifier", "new", "64"), ("fourth", "new", "63"), ("cents", "increased", "0.4")),
    )
)
SUMS = Sums(
    jobs=351,
    unauditable=1,
    avoidable_unknown=1,
    lost_unknown=1,
    total_usd=Decimal("1240.18"),
    judged_usd=Decimal(1104),
    avoidable_usd=Decimal("252.30"),
    lost_usd=Decimal("58.10"),
    lost_up_to_usd=Decimal("58.10"),
)
NORMAL = Digest(
    since=date(2026, 11, 16),
    until=date(2026, 11, 22),
    now=NOW,
    total=SUMS,
    previous_total=replace(SUMS, total_usd=Decimal("1144.07")),
    changed_families=CHANGED,
    recommendations=(
        *OPEN,
        replace(recommendation("later", 120, State.SILENCED), silence=SNOOZED),
        followed("done", Effect.CHEAPER, State.FOLLOWED),
        followed("worse", Effect.WORSE, State.CLOSED),
    ),
    unsent_recommendations=(OPEN[4], OPEN[5], replace(OPEN[5], id="anotherr")),
)
WEEKS = {
    "normal": (
        NORMAL,
        """Week to 2026-11-22: $1,240.18 or more, $310.40 or more of it avoidable or lost
Spend: 351 jobs, about 8% more than the week before, 89% judged
Avoidable: $252.30 or more; lost: $58.10 or more
Changed: nlp-finetune +$120.50; nightly-features -$88.39; \
tile-classifier +$64.00 (new)
Open: the largest of the last 30 days
1. nlp-finetune: about $540: InstanceType = ml.g6e.4xlarge (nlpfinet)
2. ranker: about $210: InstanceType = ml.g6e.4xlarge (rankerab)
3. speech-asr-large: about $120: InstanceType = ml.g6e.4xlarge (speechas)
4. old-embedder: about $40: InstanceType = ml.g6e.4xlarge (oldembed)
5. churn: about $22: InstanceType = ml.g6e.4xlarge (churnabc)
Followed: 2 in 180 days; 1 measured: $84.00 saved in 6 runs; 1 withdrawn
Snoozed: 1, $120.00 in 30 days
Open for 60+ days: 2, $330.00 in 30 days
No message: 2 families, $40.00 in 7 days
Not audited: 1 job
All jobs, 2026-11-16 to 2026-11-22
Snooze 30 days: sageaudit advice snooze nlpfinet
""",
    ),
    "empty": (replace(NORMAL, total=Sums()), "Week to 2026-11-22: no job was audited\n"),
    "empty for a route": (
        replace(NORMAL, total=Sums(), route=Route(owner="ana")),
        "Week to 2026-11-22 for owner ana: no job was audited\n",
    ),
    "runaway": (
        replace(
            NORMAL,
            total=replace(SUMS, total_usd=Decimal("3870.02"), lost_usd=Decimal(2410)),
            changed_families=(
                ChangedFamily("training/llm", "increased", Decimal(2611), Sums(), Sums()),
                *CHANGED,
            ),
            recommendations=(
                replace(recommendation("llm", 2410), rule="failed-spend", parameter="", new=""),
            ),
            unsent_recommendations=(),
            route=Route(owner="ana"),
        ),
        """\
Week to 2026-11-22: $3,870.02 or more, about 3.4 times the week before: llm +$2,611.00
Filter: owner ana
Spend: 351 jobs, 29% judged
Avoidable: $252.30 or more; lost: $2,410.00 or more
Changed: llm +$2,611.00; nlp-finetune +$120.50; \
nightly-features -$88.39
Open: the largest of the last 30 days
1. llm: about $2,400: failed-spend (llmabcde)
Not audited: 1 job
One route, 2026-11-16 to 2026-11-22
Snooze 30 days: sageaudit advice snooze llmabcde
""",
    ),
    "nothing wrong": (
        replace(
            NORMAL,
            total=Sums(jobs=3, total_usd=Decimal(5), judged_usd=Decimal(5)),
            previous_total=None,
            changed_families=(),
            recommendations=(),
            unsent_recommendations=(),
        ),
        """Week to 2026-11-22: $5.00, none of it found avoidable
Spend: 3 jobs, no data for the week before, 100% judged
Avoidable: $0.00; lost: $0.00
All jobs, 2026-11-16 to 2026-11-22
""",
    ),
    "nothing judged": (
        replace(
            NORMAL,
            total=Sums(jobs=3, not_judged=3, avoidable_unknown=3, total_usd=Decimal(5)),
            previous_total=Sums(),
            changed_families=(),
            recommendations=(),
            unsent_recommendations=(),
        ),
        """Week to 2026-11-22: $5.00, avoidable: not judged
Spend: 3 jobs, 0% judged
Avoidable: not judged; lost: $0.00
All jobs, 2026-11-16 to 2026-11-22
""",
    ),
}


@pytest.mark.parametrize("name", WEEKS)
def test_the_text_of_a_week(name: str) -> None:
    """The text is that of the mail."""
    digest, expected = WEEKS[name]
    assert make_payload(digest_card(digest))["message"] == expected


@pytest.mark.parametrize("name", WEEKS)
def test_it_fits_two_screens(name: str) -> None:
    """This holds with a link to its report too."""
    card = digest_card(WEEKS[name][0], REPORT)
    parts: Sequence[str] = (
        card.title,
        card.scope_line,
        *(card_line.labelled_text for card_line in (*card.lines, *card.commands)),
    )
    links = " ".join(link.label for link in card.links)
    assert sum(row_count(part) for part in (*parts, links) if part) <= DIGEST_ROWS


def test_a_possible_saving_is_marked() -> None:
    """It is "maybe", because it is not counted."""
    trial = replace(recommendation("a", 40), amount_kind=AmountKind.POSSIBLE)
    unknown = replace(recommendation("c", 0), amount=None)
    card = digest_card(replace(NORMAL, recommendations=(trial, unknown)))
    amounts = [line.text.partition(":")[0] for line in card.lines if line.label[0].isdigit()]
    assert amounts == ["maybe $40", "unknown amount"]


@pytest.mark.parametrize(
    ("idle", "counted", "expected"),
    [
        ("9.99", "0", []),
        ("8105.20", "0", ["about $8,100 or more at list price, not in the totals"]),
        ("8105.20", "8000", ["about $110 or more at list price, not in the totals"]),
        ("8105.20", "8100", []),
    ],
)
def test_idle_capacity_has_a_line_unless_it_is_counted(
    idle: str, counted: str, expected: list[str]
) -> None:
    """It includes prepaid hours at list price."""
    total = replace(SUMS, idle_usd=Decimal(idle), idle_counted_usd=Decimal(counted))
    lines = digest_card(replace(NORMAL, total=replace(total, idle_unknown=1))).lines
    assert [line.text for line in lines if line.label == "Idle"] == expected


def test_a_missing_report_has_its_reason() -> None:
    """The digest then has no link."""
    card = digest_card(NORMAL, DigestReport(missing_reason="it could not be written"))
    assert "Report: it could not be written" in [line.labelled_text for line in card.lines]


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("text", [*ATTACKS, "x" * 9_000])
def test_hostile_names_fit_every_service(service: str, text: str) -> None:
    """Each payload passes its own check, also marked as a repeat."""
    channel = SERVICES[service]  # type: ignore[index]
    recommendations = tuple(
        replace(recommendation, family=text, new=text, parameter=text) for recommendation in OPEN
    )
    changed = tuple(replace(change, family=text) for change in CHANGED)
    route = Route(owner=text)
    card = digest_card(
        replace(NORMAL, recommendations=recommendations, changed_families=changed, route=route),
        REPORT,
    )
    payload = channel.write(card)
    channel.check(payload)
    channel.check(channel.mark_as_repeat(payload))


def test_the_page_shows_the_normal_week() -> None:
    """docs/digest.md has the rows of the normal week."""
    page = (Path(__file__).parents[3] / "docs" / "digest.md").read_text(encoding="utf-8")
    rows = page.split("```")[1].strip().split("\n")
    lines = make_payload(digest_card(NORMAL))["message"].splitlines()
    assert rows == [row for line in lines for row in wrap(line, ROW_WIDTH)]


def test_a_digest_of_many_budgets_shows_the_most_used_and_counts_all_others() -> None:
    """Also those that the card has no room for; with and without jobs in the week."""
    months = tuple(
        month_of(
            {2: 1000.0 - usd},
            today=date(2026, 11, 22),
            budget=Budget(f"budget of the team {usd}", Decimal(1000), owner=str(usd)),
        )
        for usd in range(12)
    )
    for digest in (NORMAL, replace(NORMAL, total=Sums())):
        card = digest_card(replace(digest, budgets=months), REPORT)
        labels = [line.label for line in card.lines if line.label.startswith("Budget ")]
        assert labels == [f"Budget budget of the team {usd}" for usd in range(len(labels))]
        assert 0 < len(labels) <= 10
        [rest] = [line.text for line in card.lines if "more budget" in line.text]
        assert rest == f"{12 - len(labels)} more budgets: `sageaudit budgets` lists them"
        texts = [card.title, card.scope_line, *(line.labelled_text for line in card.lines)]
        assert sum(map(row_count, filter(None, texts))) <= DIGEST_ROWS
