"""What a message says of what was told before, on every channel and within its limits."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.alert.news import IdleHours, News, Said
from sageaudit.domain.alert.rule import Tell, Why
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.bill.finding import Severity
from sageaudit.output.text import plain, slack
from sageaudit.output.text.changes import what_changed
from sageaudit.output.text.occasion import FIRST, Occasion, first_words, lead, note, tail
from tests.fakes.documents import (
    document,
    finding,
    idle_document,
    not_judged_document,
    type_finding,
    unpriced_idle_document,
)
from tests.fakes.hostile import documents, dollars, whole_documents
from tests.output.text.test_slack import assert_within_limits

NINE = datetime(2026, 5, 20, 9, 2, tzinfo=UTC)
LOW = Said(1, News(Severity.LOW, Decimal(6), Decimal(0)), NINE)
HIGH = Said(1, News(Severity.HIGH, Decimal(412), Decimal(0)), NINE)
HOURS = IdleHours("gpu_hours", Decimal(40), None)
IDLE = Said(1, News(Severity.INFO, None, None, idle=HOURS), NINE)


def further(why: Why, after: Said = LOW, nth: int = 2, day: date | None = None) -> Occasion:
    """A further message of the day."""
    return Occasion(Tell(nth=nth, why=why, after=after), day=day)


def test_a_first_message_says_nothing_of_others() -> None:
    """Its line begins with the severity."""
    assert (lead(Severity.HIGH, FIRST), tail(FIRST), note(document(), FIRST)) == ("HIGH", "", None)


@pytest.mark.parametrize(
    ("occasion", "shown", "said"),
    [
        (
            further(Why.WORSE),
            "(second message today, after LOW $6.00)",
            (
                "Second message today",
                (
                    "The message of 09:02 UTC about the job family train-bert said LOW $6.00; this"
                    " run is more severe."
                ),
            ),
        ),
        (
            further(Why.TEN_TIMES, HIGH, 3, date(2026, 5, 18)),
            "(third message of 2026-05-18, after HIGH $412.00)",
            (
                "Third message of 2026-05-18",
                (
                    "The message of 09:02 UTC about the job family train-bert said HIGH $412.00;"
                    " this run is 10 times as much or more."
                ),
            ),
        ),
        (
            further(Why.IDLE, Said(1, News(Severity.HIGH, None, None), None), 7),
            "(7th message today, after HIGH, dollars not known)",
            (
                "7th message today",
                (
                    "An earlier message about the job family train-bert said HIGH, dollars not"
                    " known; it was not about idle hours."
                ),
            ),
        ),
        (
            further(Why.TEN_TIMES, IDLE),
            "(second message today, after IDLE 40 GPU-hours)",
            (
                "Second message today",
                (
                    "The message of 09:02 UTC about the job family train-bert said IDLE 40"
                    " GPU-hours; this run is 10 times as much or more."
                ),
            ),
        ),
    ],
)
def test_a_further_message_says_after_what_and_why(
    occasion: Occasion, shown: str, said: tuple[str, str]
) -> None:
    """In the first line and in a sentence; the day where it is over."""
    assert tail(occasion) == shown
    assert note(document(), occasion) == said


def test_a_correction_says_what_was_told_what_holds_now_and_why() -> None:
    """The time of a message that was stored without one is not made up."""
    occasion = Occasion(Tell(corrects=HIGH), changes=("gpu-idle ($410.00) is no longer found",))
    assert lead(Severity.HIGH, occasion) == "Correction:"
    assert note(document(), occasion) == (
        "Corrects",
        (
            "the message of 2026-05-20 09:02 UTC, which said HIGH $412.00. Now: HIGH, $2.04 of"
            " $4.55 (45%) was avoidable. What changed: gpu-idle ($410.00) is no longer found."
        ),
    )
    nothing = document(findings=[], avoidable_usd=Decimal(0))
    timeless = Occasion(Tell(corrects=Said(1, HIGH.news, None)))
    assert note(nothing, timeless) == (
        "Corrects",
        (
            "an earlier message, which said HIGH $412.00. Now: none of $4.55 was found avoidable."
            " Do not act on the earlier message."
        ),
    )


@pytest.mark.parametrize(
    ("now", "before", "shown"),
    [
        (
            document(avoidable_usd=None, lost_usd=None, lost_up_to_usd=None),
            HIGH,
            "the dollars are not known; $412.00 avoidable is withdrawn",
        ),
        (
            document(lost_usd=Decimal(3), lost_up_to_usd=Decimal(3)),
            HIGH,
            "$5.04 avoidable or lost, not $412.00 avoidable",
        ),
        (document(), IDLE, "$2.04 avoidable; the earlier message had only idle hours"),
        (unpriced_idle_document(), IDLE, "1,024 GPU-hours were idle, not 40"),
        (not_judged_document(), IDLE, "few or no hours were idle, not 40 GPU-hours"),
    ],
)
def test_the_first_line_of_a_correction_has_the_new_figure_first(
    now: AuditDocument, before: Said, shown: str
) -> None:
    """And what it replaces."""
    idle = not (before.news.of_money or now["findings"][:1])
    occasion = Occasion(Tell(idle=idle, corrects=before))
    assert first_words(now, occasion) == shown


def test_idle_hours_are_told_in_hours_where_no_price_is_known() -> None:
    """No dollar sign, and no word that calls them a saving."""
    occasion = Occasion(Tell(idle=True))
    first_line = plain.message(unpriced_idle_document(), occasion=occasion)["message"].split("\n")[
        0
    ]
    assert first_line == (
        "IDLE  1,024 of 1,536 GPU-hours (67%) not used, price not known - llm-0413"
    )
    priced = plain.message(idle_document(), occasion=occasion)["message"]
    assert priced.startswith(
        "IDLE  1,024 of 1,536 GPU-hours (67%) not used, worth about $8,100 - llm-0412\n"
    )
    assert "This is no saving" in priced
    assert "avoidable" not in priced.split("\n")[0]


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (document(), document(), ()),
        (
            document(bill={**document()["bill"], "total_usd": Decimal(9)}),
            document(),
            ("the run's cost is $4.55, was $9.00",),
        ),
        (document(judged="partly"), document(), ("all of it could be judged now",)),
        (document(), document(judged="partly"), ("less of it could be judged now",)),
        (document(judged="no"), document(judged="partly"), ()),
        (
            document(findings=[finding()]),
            document(findings=[type_finding()]),
            (
                "gpu-underused ($1.53) is found now",
                "download-dominates ($0.51) is no longer found",
            ),
        ),
        (
            document(findings=[finding()]),
            document(findings=[finding(saving_usd=None)]),
            ("download-dominates is unknown, was $0.51",),
        ),
        (
            document(),
            document(audit={**document()["audit"], "ruleset": "2", "policy": "2"}),
            ("the rules changed", "the policy changed"),
        ),
        (
            document(children=[document()]),
            document(children=[document()] * 3),
            ("2 training jobs came later",),
        ),
    ],
)
def test_what_changed_is_said_as_far_as_two_versions_show_it(
    before: AuditDocument, now: AuditDocument, said: tuple[str, ...]
) -> None:
    """Causes before figures; nothing is guessed."""
    assert what_changed(before, now) == said


def news() -> st.SearchStrategy[News]:
    """Any figures."""
    hours = st.builds(IdleHours, st.just("gpu_hours"), dollars(), st.none() | dollars())
    usd = st.none() | dollars()
    return st.builds(News, st.sampled_from(Severity), usd, usd, dollars(), st.none() | hours)


def occasions() -> st.SearchStrategy[Occasion]:
    """Any message that is not the first."""
    said = st.builds(Said, st.just(1), news(), st.none() | st.just(NINE))
    day = st.none() | st.just(NINE.date())
    nth = st.integers(2, 2000)
    tells = st.builds(Tell, st.booleans(), nth, st.sampled_from(Why), said) | st.builds(
        lambda idle, told: Tell(idle=idle, corrects=told), st.booleans(), said
    )
    return st.builds(Occasion, tells, day, st.lists(st.text(), max_size=4).map(tuple))


@whole_documents
@given(documents(), occasions())
def test_any_occasion_keeps_the_limits_of_each_channel(
    audit: AuditDocument, occasion: Occasion
) -> None:
    """Also marked as a repeat; the subject is less than 100 printable ASCII characters."""
    notice: dict[str, Any] = dict(plain.message(audit, occasion=occasion))
    for payload in (notice, plain.as_repeat(notice)):
        assert 0 < len(payload["subject"]) < 100
        assert payload["subject"].isascii()
        assert payload["subject"].isprintable()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", notice["message"])
    post = slack.message(audit, occasion=occasion)
    assert_within_limits(post)
    assert_within_limits(slack.as_repeat(post))
