from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.bill.bill import UPPER_BOUND
from sageaudit.output.text.headline import headline
from sageaudit.output.text.message import message_of, pool_note
from sageaudit.output.text.money_notes import money_notes
from tests.fakes.documents import (
    document,
    finding,
    lost_document,
    perhaps_lost_document,
    phase,
    rollup_document,
)

BILL = document()["bill"]
UNJUDGED: dict[str, Any] = {
    "avoidable_usd": None,
    "judged": "no",
    "not_judged": ["The use of its machines was not judged: no points."],
}
RUNNING = [{"rule": "gpu-idle", "code": "job_not_finished", "reason": "the job has not ended"}]
PROVISIONAL = "provisional: metrics or costs were incomplete when it was audited"


@pytest.mark.parametrize(
    ("overrides", "shown"),
    [
        ({}, "$2.04 of $4.55 (45%) was avoidable"),
        (
            {"avoidable_usd": Decimal(0), "lost_usd": Decimal("4.5534")},
            "all of $4.55 was lost",
        ),
        ({"lost_usd": Decimal(1)}, "$3.04 of $4.55 (67%) was avoidable or lost"),
        ({"bill": {**BILL, "basis": "upper_bound"}}, "$2.04 of up to $4.55 (45%) was avoidable"),
        (
            {"bill": {**BILL, "basis": "estimated_from_times"}},
            "$2.04 of about $4.55 (45%) was avoidable",
        ),
        ({"bill": {**BILL, "complete": False}}, "$2.04 of at least $4.55 was avoidable"),
        ({"bill": {**BILL, "total_usd": None, "complete": False}}, "$2.04 was avoidable"),
        ({"avoidable_usd": Decimal(0)}, "none of $4.55 was found avoidable"),
        (
            {"avoidable_usd": Decimal(0), "bill": {**BILL, "total_usd": None, "complete": False}},
            "none of the cost was found avoidable",
        ),
        (
            {"avoidable_usd": None, "lost_usd": None},
            "it cost $4.55, and what was avoidable or lost is not known",
        ),
        (
            {"avoidable_usd": Decimal(0), "lost_usd": None},
            "it cost $4.55, and what was lost is not known",
        ),
        ({**UNJUDGED}, "it cost $4.55, and what was avoidable could not be judged"),
        (
            {**UNJUDGED, "bill": {**BILL, "total_usd": None}},
            "its cost is not known, and what was avoidable could not be judged",
        ),
        (
            {**UNJUDGED, "lost_usd": Decimal(1)},
            "$1.00 of $4.55 (22%) was lost; the rest was not judged",
        ),
        (
            {**UNJUDGED, "bill": {**BILL, "basis": "prepaid", "total_usd": Decimal(0)}},
            "its capacity is prepaid, and what was avoidable could not be judged",
        ),
        (
            {
                "avoidable_usd": Decimal(0),
                "bill": {**BILL, "basis": "prepaid", "total_usd": Decimal(0)},
            },
            "its capacity is prepaid, so no dollars were avoidable",
        ),
        (
            {"avoidable_usd": Decimal(0), "judged": "partly"},
            "none of $4.55 was found avoidable, but not all of it could be judged",
        ),
        (
            {"avoidable_usd": Decimal(0), "judged": None},
            "none of $4.55 was found avoidable, and how much could be judged is not known",
        ),
        (
            {**UNJUDGED, "unknown": RUNNING, "bill": {**BILL, "complete": False}},
            "it still runs, and cost at least $4.55 so far",
        ),
        (
            {**UNJUDGED, "unknown": RUNNING, "bill": {**BILL, "total_usd": Decimal(0)}},
            "it still waits for its instances, and cost nothing so far",
        ),
        (
            {**UNJUDGED, "unknown": RUNNING, "bill": {**BILL, "basis": "prepaid"}},
            "it still runs, on prepaid capacity",
        ),
        (
            {**UNJUDGED, "unknown": RUNNING, "bill": {**BILL, "total_usd": None}},
            "it still runs",
        ),
        (
            {"bill": {**BILL, "basis": "upper_bound", "complete": False, "missing": ["bound"]}},
            "$2.04 of up to $4.55 was avoidable",
        ),
        (
            {"bill": {**BILL, "basis": "upper_bound", "complete": False, "missing": ["a", "b"]}},
            "$2.04 of about $4.55 was avoidable",
        ),
        (
            {
                "avoidable_usd": Decimal(0),
                "bill": {**BILL, "basis": "none", "total_usd": Decimal(0)},
            },
            "it cost nothing",
        ),
        (
            {"avoidable_usd": Decimal(0), "bill": {**BILL, "total_usd": Decimal(0)}},
            "it cost nothing",
        ),
    ],
)
def test_headline(overrides: dict[str, Any], shown: str) -> None:
    """The first line is the whole news, and no surer than the bill."""
    assert headline(document(**overrides)) == shown


def test_a_headline_says_up_to_what_may_have_been_avoidable() -> None:
    """A range from 0 is not counted, and still news; one that another finding covers is not."""
    made = document(avoidable_usd=Decimal(0))
    ranged = {
        **made["findings"][0],
        "saving_usd": Decimal(0),
        "saving_range_usd": [Decimal(0), Decimal("1.234")],
    }
    shown = headline(cast("AuditDocument", {**made, "findings": [ranged]}))
    assert shown == "none of $4.55 was certainly avoidable, but up to $1.30 may have been"
    covered = {**ranged, "subsumed_by": "gpu-idle"}
    shown = headline(cast("AuditDocument", {**made, "findings": [covered]}))
    assert shown == "none of $4.55 was found avoidable"


def test_a_headline_says_up_to_what_may_be_lost() -> None:
    """All of the bill, a part beside avoidable dollars, and nothing new for a stored document."""
    perhaps = perhaps_lost_document()
    assert headline(perhaps) == "up to $4.55, its whole cost, was lost"
    some = {"avoidable_usd": Decimal("0.5"), "lost_up_to_usd": Decimal("4.0534")}
    shown = headline(cast("AuditDocument", {**perhaps, **some}))
    assert shown == "$0.50 of $4.55 (11%) was avoidable, and up to $4.05 more was lost"
    stored = {key: value for key, value in perhaps.items() if key != "lost_up_to_usd"}
    assert headline(cast("AuditDocument", stored)) == "none of $4.55 was found avoidable"


def test_a_run_that_may_be_lost_is_a_message() -> None:
    """Its fix, and the most that was paid for nothing."""
    message = message_of(perhaps_lost_document())
    assert message.saving == "up to $4.55 was paid for nothing"
    assert (message.why or "").startswith("The run failed after 3 h")


def test_why_names_rule_and_confidence() -> None:
    """The reason carries the rule's id, its name and how sure it is."""
    assert message_of(document()).why == (
        "The GPU averaged 11% over 2 h 20 min; p95 was 24%. (SA202 gpu-underused, derived)"
    )


def test_rollup_saves_over_its_jobs() -> None:
    """A roll-up's saving is that of all its jobs, at the prices of their bills."""
    message = message_of(rollup_document())
    assert (message.why or "").startswith("In 2 of 3 training jobs, such as: The GPU averaged 11%")
    assert message.saving == "would have saved $3.80 over all its jobs"
    assert "2026-05-20" in " ".join(message.context)


def test_lost_run_without_a_setting() -> None:
    """A failed run has nothing to set, and the message does not pretend so."""
    assert message_of(lost_document()).saving == "no setting to change; $4.55 was paid for nothing"


def test_billed_phases_are_summed() -> None:
    """A spot run's repeated phases are one figure each; what is free is not shown."""
    phases = [
        phase("Starting", 100, None, billed=False),
        phase("Training", 600, "1"),
        phase("Downloading", 60, "0.1"),
        phase("Training", 600, "1"),
        phase("Uploading", None, None),
    ]
    facts = dict(message_of(document(phases=phases)).facts)
    assert facts["Phases"] == "training 20 min $2.00, downloading 1 min $0.10"


def test_unknown_facts_take_no_room() -> None:
    """A fact that is not known leaves its place to one that is."""
    facts = message_of(document(findings=[finding(evidence={"hosts": None, "depth": 3})])).facts
    assert ("Depth", "3") in facts
    assert "Hosts" not in dict(facts)


def test_a_provisional_audit_promises_no_second_look() -> None:
    """It says that figures may be incomplete, and no more."""
    audit = document(audit={**document()["audit"], "settled": False})
    assert money_notes(audit)[-1] == PROVISIONAL


def test_six_facts_at_most() -> None:
    """Evidence stays on one screen."""
    many = finding(evidence={f"fact_{n}": n for n in range(20)})
    assert len(message_of(document(findings=[many])).facts) == 6


def test_others_are_counted() -> None:
    """What does not fit is announced with its number."""
    findings = [finding(rule=f"rule-{n}", saving_usd=Decimal(20 - n)) for n in range(9)]
    others = message_of(document(findings=findings)).others
    assert others[0] == "rule-1 $19.00"
    assert others[-1] == "+3 more"


def test_money_notes() -> None:
    """A bill says whose prices, on what basis, what it lacks and whether it may change."""
    audit = document(
        bill={**BILL, "basis": "upper_bound", "complete": False, "missing": ["no storage price"]},
        audit={**document()["audit"], "settled": False, "due_at": "2026-05-20T14:00:00Z"},
    )
    assert money_notes(audit) == [
        "on-demand list price of 2026-05-20, before discounts",
        "bill incomplete: no storage price",
        "spot run without billable seconds: the bill is an upper bound",
        PROVISIONAL,
    ]


def test_own_rates_are_named_with_their_days() -> None:
    """Learnt ones by the cost report; where a line has none, that the rest is at list price."""
    [line, *_] = BILL["lines"]
    learnt = line | {
        "price_kind": "own",
        "price_as_of": "2026-10-01/2026-10-31",
        "price_source": "learnt from cur.csv, net of discounts",
    }
    note = "your own rates of 2026-10-01 to 2026-10-31, learnt from a cost report"
    own = {**BILL, "price_kind": "own"}
    assert money_notes(document(bill={**own, "lines": [learnt]}))[0] == note
    mixed = document(bill={**own, "lines": [learnt, line | {"price_kind": "list"}]})
    assert money_notes(mixed)[0] == f"{note}; the rest at list price"
    written = line | {"price_kind": "own", "price_as_of": None, "price_source": "policy: rate"}
    assert money_notes(document(bill={**own, "lines": [written]}))[0] == (
        "your own prices, as set in policy.toml"
    )


def test_context_says_what_was_not_checked() -> None:
    """Rules without data are named with their reason; the run's note stands beside the place."""
    context = message_of(document(), "3rd run with this finding").context
    assert context[1] == "3rd run with this finding"
    assert "Not checked: cpu-underused (CPUUtilization covers 41% of the active time)" in context


def test_possible_savings_are_named_apart() -> None:
    """Each is named with its upper end, and is in no sum."""
    maybe = finding(
        rule="maybe", saving_usd=Decimal(0), saving_range_usd=[Decimal(0), Decimal("3.5")]
    )
    note = message_of(document(findings=[*document()["findings"], maybe])).context[-2]
    assert (
        note == "Possible savings, not in the total: spot-not-used about $0.90, maybe up to $3.50"
    )


def test_nothing_to_notify() -> None:
    """An audit without a counted finding has no message."""
    with pytest.raises(ValueError, match="no message"):
        message_of(document(findings=[]))


def test_chat_gets_neither_s3_paths_nor_role_names() -> None:
    """A channel has more readers than the account: paths and roles are taken out of failures."""
    failed = lost_document()
    failed["findings"][0]["evidence"]["failure_reason"] = (
        "arn:aws:sts::111122223333:assumed-role/Trainer/SageMaker may not read s3://bucket/key.csv"
    )
    facts = dict(message_of(failed).facts)
    assert "[path] may not read [path]" in facts.values()


def test_what_was_not_judged_is_said_once_in_words_of_people() -> None:
    """The sentence replaces the list of rules that wait for the same metrics."""
    waits = [
        {"rule": rule, "code": "metric_missing", "reason": "GPUUtilization: no points"}
        for rule in ("gpu-idle", "gpu-underused")
    ]
    other = {"rule": "old-generation", "code": "type_unknown_price", "reason": "it has no price"}
    sentence = "The use of the GPUs was not judged: no points."
    context = message_of(
        document(judged="partly", not_judged=[sentence], unknown=[*waits, other])
    ).context
    assert f"Judged in part. {sentence}" in context
    assert "Not checked: old-generation (it has no price)" in context


def test_the_bound_of_a_spot_bill_is_said_once() -> None:
    """Its basis says it, so it is no second note."""
    bound = {**BILL, "basis": "upper_bound", "complete": False, "missing": [UPPER_BOUND]}
    notes = money_notes(document(bill=bound))
    assert [note for note in notes if "upper bound" in note] == [
        "spot run without billable seconds: the bill is an upper bound"
    ]
    assert not [note for note in notes if "incomplete" in note]


def pooled(runs: int, avoidable_usd: str | None) -> dict[str, Any]:
    """The head of an audit that was judged with earlier runs of its family."""
    pool = {
        "runs": runs,
        "active_minutes": Decimal(41),
        "own_active_minutes": Decimal(8),
        "earlier_runs": [f"run-{number}" for number in range(runs - 1)],
        "avoidable_usd": None if avoidable_usd is None else Decimal(avoidable_usd),
    }
    return {"audit": {**document()["audit"], "pool": pool}}


def test_a_short_run_says_with_which_it_was_judged_and_what_they_all_count() -> None:
    """The headline has its own dollars, the context the sum."""
    judged = document(**pooled(6, "1.8412"))
    note = (
        "Short runs are judged together: this one with the last 5 runs of its family, "
        "$1.84 avoidable in all 6."
    )
    assert pool_note(judged) == note
    assert note in message_of(judged).context
    by_estimate = {"bill": {**BILL, "missing": ["a guess"], "estimated": ["a guess"]}}
    about = pool_note(document(**pooled(6, "1.8412"), **by_estimate))
    assert about == note.replace("$1.84", "about $1.84")
    assert pool_note(document(**pooled(2, None))) == (
        "Short runs are judged together: this one with the last run of its family."
    )


def test_other_runs_have_no_such_note() -> None:
    """Neither those judged alone, nor audits that were stored before there were pools."""
    alone = {"audit": {**document()["audit"], "pool": None}}
    assert pool_note(document(**alone)) is pool_note(document()) is None
