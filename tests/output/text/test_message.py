from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.output.text.message import message_of
from tests.fakes.documents import (
    document,
    estimated_document,
    finding,
    lost_document,
    perhaps_lost_document,
    rollup_document,
    type_finding,
)


def perhaps(rule: str, **changes: Any) -> Any:
    """A finding of which nothing is counted, up to $3.50."""
    span = [Decimal(0), Decimal("3.5")]
    return finding(rule=rule, saving_usd=Decimal(0), saving_range_usd=span, **changes)


def test_why_names_rule_and_confidence() -> None:
    """The reason carries the rule's id, its name and how sure it is."""
    assert message_of(document()).why == (
        "The GPU averaged 11% over 2 h 20 min; p95 was 24%. (SA202 gpu-underused, derived)"
    )


@pytest.mark.parametrize(
    ("make", "saving"),
    [
        (rollup_document, "would have saved $3.80 over all its jobs"),
        (lost_document, "no setting to change; $4.55 was paid for nothing"),
        (perhaps_lost_document, "up to $4.55 was paid for nothing"),
        (estimated_document, "saves about $0.96 per run"),
        (lambda: document(findings=[finding(fix=[])]),
         "no setting to change; ending this waste saves $0.51 per run"),
        (lambda: document(findings=[finding(saving_usd=None, saving_alone_usd=None)]),
         "its saving is not known"),
    ],
)  # fmt: skip
def test_what_the_fix_saves(make: Any, saving: str) -> None:
    """A roll-up's over its jobs; a failed run may have nothing to set."""
    assert message_of(make()).saving == saving


def test_facts_are_six_at_most_and_known() -> None:
    """A fact that is not known leaves its place to one that is; evidence stays on one screen."""
    facts = message_of(document(findings=[finding(evidence={"hosts": None, "depth": 3})])).facts
    assert ("Depth", "3") in facts
    assert "Hosts" not in dict(facts)
    many = finding(evidence={f"fact_{n}": n for n in range(20)})
    assert len(message_of(document(findings=[many])).facts) == 6


def test_others_are_counted() -> None:
    """What does not fit is announced with its number; estimates are marked there too."""
    findings = [finding(rule=f"rule-{n}", saving_usd=Decimal(20 - n)) for n in range(9)]
    first = message_of(document(findings=findings)).context[0]
    assert first.startswith("Also found: rule-1 $19.00, rule-2 $18.00")
    assert first.endswith(", +3 more")
    more = type_finding(rule="cheaper-type", saving_usd=Decimal("0.10"), estimated=True)
    audit = estimated_document()
    audit["findings"].append(more)
    assert message_of(audit).context[0] == "Also found: cheaper-type about $0.10"


def test_possible_savings_are_named_apart() -> None:
    """Each is named with its upper end, and is in no sum."""
    trial = perhaps("trial", bucket="possible")
    audit = document(findings=[*document()["findings"], perhaps("maybe"), trial])
    [note] = [words for words in message_of(audit).context if words.startswith("Possible")]
    assert note == (
        "Possible savings, not in the total: spot-not-used about $0.90, maybe up to $3.50,"
        " trial up to about $3.50"
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
    audit = document(judged="partly", not_judged=[sentence], unknown=[*waits, other])
    context = message_of(audit).context
    assert f"Judged in part. {sentence}" in context
    assert "Not checked: old-generation (it has no price)" in context
    reason = "CPUUtilization covers 41% of the active time"
    assert f"Not checked: cpu-underused ({reason})" in message_of(document()).context


def test_a_provisional_audit_says_when_it_is_audited_again() -> None:
    """Or only that figures may be incomplete, where no time is set."""
    audit = document()
    audit["audit"]["settled"] = False
    assert any("; provisional: metrics" in note for note in message_of(audit).context)
    audit["audit"]["due_at"] = "2026-05-20T14:00:00Z"
    context = " ".join(message_of(audit).context)
    assert "is audited again after 2026-05-20 14:00 UTC" in context
    assert "; provisional" not in context
