"""Why a message is sent now, in words, on every channel and within its limits."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.alert.alert import Alert, AlertFigures, IdleHours
from sageaudit.domain.alert.rule import FIRST, Notify
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.bill.finding import Severity
from sageaudit.output.text import plain, slack
from sageaudit.output.text.reason import first_words, lead, note, tail, what_changed
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
LOW = Alert(1, AlertFigures(Severity.LOW, Decimal(6), Decimal(0)), NINE)
HIGH = Alert(1, AlertFigures(Severity.HIGH, Decimal(412), Decimal(0)), NINE)
UNKNOWN = AlertFigures(Severity.HIGH, None, None)
HOURS = IdleHours("gpu_hours", Decimal(40), None)
IDLE = Alert(1, AlertFigures(Severity.INFO, None, None, idle=HOURS), NINE)


SEVERE, TEN_TIMES = "this run is more severe", "this run is 10 times as much or more"


def further(why: str, after: Alert = LOW, nth: int = 2, day: date | None = None) -> Notify:
    """A further message of the day."""
    return Notify(nth=nth, why=why, after=after, day=day)


def test_a_first_message_says_nothing_of_others() -> None:
    """Its line begins with the severity."""
    assert (lead(Severity.HIGH, FIRST), tail(FIRST), note(document(), FIRST)) == ("HIGH", "", None)


@pytest.mark.parametrize(
    ("notify", "shown", "says"),
    [
        (
            further(SEVERE),
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
            further(TEN_TIMES, HIGH, 3, date(2026, 5, 18)),
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
            further("it was not about idle hours", Alert(1, UNKNOWN, NINE), 7),
            "(7th message today, after HIGH, dollars not known)",
            (
                "7th message today",
                (
                    "The message of 09:02 UTC about the job family train-bert said HIGH, dollars"
                    " not known; it was not about idle hours."
                ),
            ),
        ),
        (
            further(TEN_TIMES, IDLE),
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
    notify: Notify, shown: str, says: tuple[str, str]
) -> None:
    """In the first line and in a sentence; the day where it is over."""
    assert tail(notify) == shown
    assert note(document(), notify) == says


def test_a_correction_says_what_it_corrects_what_holds_now_and_why() -> None:
    """What changed is left out where the earlier version cannot be read."""
    before = document(
        findings=[*document()["findings"], finding(rule="gpu-idle", saving_usd=Decimal(410))]
    )
    notify = Notify(corrects=HIGH, before=before)
    assert lead(Severity.HIGH, notify) == "Correction:"
    assert note(document(), notify) == (
        "Corrects",
        (
            "the message of 2026-05-20 09:02 UTC, which said HIGH $412.00. Now: HIGH, $2.04 of"
            " $4.55 (45%) was avoidable. What changed: gpu-idle ($410.00) is no longer found."
        ),
    )
    nothing = document(findings=[], avoidable_usd=Decimal(0), possible_usd=Decimal(0))
    assert note(nothing, Notify(corrects=HIGH)) == (
        "Corrects",
        (
            "the message of 2026-05-20 09:02 UTC, which said HIGH $412.00. Now: none of $4.55 was"
            " found avoidable. Do not act on the earlier message."
        ),
    )


@pytest.mark.parametrize(
    ("now", "before", "shown"),
    [
        (
            document(avoidable_usd=None, lost_usd=None, lost_up_to_usd=None),
            HIGH,
            "HIGH, dollars not known; was HIGH $412.00",
        ),
        (
            document(lost_usd=Decimal(3), lost_up_to_usd=Decimal(3)),
            HIGH,
            "HIGH $5.04; was HIGH $412.00",
        ),
        (document(), IDLE, "HIGH $2.04; was IDLE 40 GPU-hours"),
        (unpriced_idle_document(), IDLE, "IDLE 1,024 GPU-hours; was IDLE 40 GPU-hours"),
        (not_judged_document(), IDLE, "few or no hours were idle; was IDLE 40 GPU-hours"),
    ],
)
def test_the_first_line_of_a_correction_has_the_new_figure_first(
    now: AuditDocument, before: Alert, shown: str
) -> None:
    """And what it replaces."""
    idle = not (before.figures.of_money or now["findings"][:1])
    assert first_words(now, Notify(idle=idle, corrects=before)) == shown


def test_idle_hours_are_in_hours_where_no_price_is_known() -> None:
    """No dollar sign, and no word that calls them a saving."""
    idle = Notify(idle=True)
    unpriced = plain.message(unpriced_idle_document(), notify=idle)["message"]
    assert unpriced.split("\n")[0] == (
        "IDLE  1,024 of 1,536 GPU-hours (67%) not used, price not known - llm-0413"
    )
    priced = plain.message(idle_document(), notify=idle)["message"]
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


def figures() -> st.SearchStrategy[AlertFigures]:
    """Any figures."""
    hours = st.builds(IdleHours, st.just("gpu_hours"), dollars(), st.none() | dollars())
    usd = st.none() | dollars()
    severities = st.sampled_from(Severity)
    return st.builds(AlertFigures, severities, usd, usd, dollars(), st.none() | hours)


def decisions() -> st.SearchStrategy[Notify]:
    """Any message that is not the first."""
    alerts = st.builds(Alert, st.just(1), figures(), st.just(NINE))
    idle, day = st.booleans(), st.none() | st.just(NINE.date())
    further_ones = st.builds(
        Notify, idle, st.integers(2, 2000), st.sampled_from([SEVERE, TEN_TIMES]), alerts, day=day
    )
    before = st.none() | documents()
    return further_ones | st.builds(Notify, idle, corrects=alerts, before=before, day=day)


@whole_documents
@given(documents(), decisions())
def test_any_message_keeps_the_limits_of_each_channel(audit: AuditDocument, notify: Notify) -> None:
    """Also marked as a repeat; the subject is less than 100 printable ASCII characters."""
    notice: dict[str, Any] = dict(plain.message(audit, notify=notify))
    for payload in (notice, plain.as_repeat(notice)):
        assert 0 < len(payload["subject"]) < 100
        assert payload["subject"].isascii()
        assert payload["subject"].isprintable()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", notice["message"])
    post = slack.message(audit, notify=notify)
    assert_within_limits(post)
    assert_within_limits(slack.as_repeat(post))
