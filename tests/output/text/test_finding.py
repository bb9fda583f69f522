from decimal import Decimal
from typing import Any

import pytest

from sageaudit.output.text.finding import (
    finding_parts,
    fix_text,
    make_finding_parts,
    step_parts,
)
from tests.fakes.documents import document, finding

WAY = [{"parameter": "A.B", "old": 2, "new": 1}]


def usd(*amounts: str) -> list[Decimal]:
    """Returns the ends of a range."""
    return [Decimal(amount) for amount in amounts]


@pytest.mark.parametrize(
    ("changes", "dollars", "saving"),
    [
        pytest.param({}, "$1.20 avoidable", "saves $1.20 per run", id="a saving"),
        pytest.param(
            {"estimated": True},
            "about $1.20 avoidable",
            "saves about $1.20 per run",
            id="an estimated saving",
        ),
        pytest.param(
            {"saving_range_usd": usd("1.2", "2.5")},
            "$1.20 avoidable",
            "saves $1.20 to $2.50 per run",
            id="a range",
        ),
        pytest.param(
            {"saving_usd": Decimal(1)},
            "$1.00 avoidable",
            "saves $1.00 per run after the other fixes, or $1.20 alone",
            id="less with the other fixes",
        ),
        pytest.param(
            {"saving_usd": Decimal(0)},
            "$1.20 avoidable (counted by other findings)",
            "saves nothing more after the other fixes, or $1.20 alone",
            id="nothing more with the other fixes",
        ),
        pytest.param(
            {"saving_usd": None, "saving_alone_usd": None},
            "avoidable, amount unknown",
            None,
            id="unknown dollars",
        ),
        pytest.param(
            {"saving_usd": Decimal(0), "saving_alone_usd": Decimal(0)}, None, None, id="no dollars"
        ),
        pytest.param(
            {
                "saving_usd": Decimal(0),
                "saving_alone_usd": Decimal(0),
                "saving_range_usd": usd("0", "9.13"),
            },
            "up to $9.13 avoidable (not in the totals)",
            "saves up to $9.13 per run",
            id="up to some dollars",
        ),
        pytest.param(
            {"bucket": "lost", "estimated": True},
            "about $1.20 lost",
            "about $1.20 was paid for nothing",
            id="a loss",
        ),
        pytest.param(
            {
                "bucket": "lost",
                "saving_usd": Decimal(0),
                "saving_alone_usd": Decimal(0),
                "saving_range_usd": usd("0", "4.55"),
            },
            "up to $4.55 lost (not in the totals)",
            "up to $4.55 was paid for nothing",
            id="a possible loss",
        ),
        pytest.param(
            {"bucket": "possible", "saving_range_usd": usd("1.2", "2.59")},
            "about $1.20 to $2.60 possible",
            "may save about $1.20 to $2.60 per run",
            id="a possible saving",
        ),
        pytest.param(
            {
                "bucket": "possible",
                "saving_usd": Decimal("0.77"),
                "saving_range_usd": usd("1.2", "2.59"),
            },
            "about $0.77 possible",
            "may save about $0.77 per run",
            id="a possible saving that is less with the other fixes",
        ),
        pytest.param(
            {"bucket": "none", "saving_usd": None, "saving_alone_usd": None},
            None,
            None,
            id="a fact without dollars",
        ),
    ],
)
def test_a_finding_says_its_dollars_and_what_its_fix_saves(
    changes: dict[str, Any], dollars: str | None, saving: str | None
) -> None:
    """The counted end comes first; what is left with the other fixes applied is in the totals."""
    amount = Decimal("1.2")
    whole = {"saving_usd": amount, "saving_alone_usd": amount, "saving_range_usd": None}
    parts = make_finding_parts(finding(**(whole | changes)))
    assert (parts.dollars, parts.saving_text) == (dollars, saving)


def test_the_parts_of_a_finding() -> None:
    """Each alternative has a title; the caveat and the facts come from the finding."""
    parts = make_finding_parts(finding("gpu-underused", alternatives=[WAY], saving_range_usd=None))
    assert [title for title, _ in parts.alternatives] == [
        "Fix (saves $1.53 per run after the other fixes, or $1.73 alone):",
        "Or (saving unknown):",
    ]
    priced = make_finding_parts(
        finding("gpu-underused", alternatives=[WAY, WAY], alternatives_usd=[Decimal("1.4")])
    )
    assert [title for title, _ in priced.alternatives][1:] == [
        "Or (saves $1.40 per run):",
        "Or (saving unknown):",
    ]
    assert parts.caveat == "The data loader gets 4 vCPUs in place of 8."
    assert dict(parts.facts)["GPU memory max"] == "38.5%"
    lost = make_finding_parts(finding(bucket="lost"))
    assert [title for title, _ in lost.alternatives] == ["Fix:"]
    code = make_finding_parts(finding(fix=[], first_step="Exit when done"))
    assert code.alternatives == (("First step: Exit when done.", ()),)
    assert step_parts("First step: Do a - b. - Then c. - Or d.") == [
        *("First step: Do a - b.", "Then c.", "Or d."),
    ]
    facts = make_finding_parts(finding(evidence={"vcpu": 4, "limit_s": None})).facts
    assert facts == (("vCPU", "4"), ("Limit", "unknown"))


@pytest.mark.parametrize(
    ("reason_fields", "expected"),
    [
        pytest.param(
            {"superseded_by": "gpu-idle"},
            "Not counted: gpu-idle already has this amount",
            id="superseded by a finding",
        ),
        pytest.param(
            {"subsumed_by": "gpu-idle"},
            "Not counted: gpu-idle already has this amount",
            id="subsumed by a finding",
        ),
        pytest.param(
            {"exempt": {"by": "ana", "until": None, "reason": "release"}},
            "Exempt by ana (reason: release)",
            id="accepted by a tag",
        ),
        pytest.param(
            {"exempt": {"by": "policy", "until": "2026-12-31", "reason": "benchmark"}},
            "Exempt by the policy until 2026-12-31 (reason: benchmark)",
            id="accepted by the policy",
        ),
    ],
)
def test_findings_that_are_not_counted_come_last(
    reason_fields: dict[str, Any], expected: str
) -> None:
    """They have a reason and no dollars.

    Counted findings come first, then possible ones, by saving.
    """
    small, large = finding(rule="small"), finding(rule="large", saving_usd=Decimal(8))
    possible = finding(rule="perhaps", bucket="possible", saving_usd=Decimal(9))
    uncounted = finding(rule="aside", saving_usd=Decimal(9), **reason_fields)
    parts_list, repeated = finding_parts(document(findings=[uncounted, possible, small, large]))
    assert [parts.rule for parts in parts_list] == ["large", "small", "perhaps", "aside"]
    assert (parts_list[-1].not_counted_because, parts_list[-1].dollars, repeated) == (
        expected,
        None,
        None,
    )


def test_findings_reported_for_an_earlier_run_are_only_named() -> None:
    """One sentence names them and the run."""
    again = [finding(rule=rule, reported_for_run="train-1") for rule in ("a", "b")]
    parts_list, repeated = finding_parts(document(findings=[*again, finding(rule="new")]))
    assert [parts.rule for parts in parts_list] == ["new"]
    assert repeated == "Already reported for train-1, an earlier run of the family: a, b"


TYPE = "ResourceConfig.InstanceType"
MODE = {"parameter": "InputDataConfig[a].InputMode", "old": "File", "new": "FastFile"}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        pytest.param(
            {"fix": [{"parameter": TYPE, "old": "ml.p3.2xlarge", "new": "ml.g4dn.2xlarge"}]},
            'ResourceConfig.InstanceType = "ml.g4dn.2xlarge"',
            id="a parameter",
        ),
        pytest.param({"fix": WAY}, "A.B = 1", id="a way to a parameter"),
        pytest.param(
            {"fix": [{"parameter": "A", "old": None, "new": True}, *WAY, MODE]},
            'A = true; A.B = 1; InputDataConfig[a].InputMode = "FastFile"',
            id="three parameters",
        ),
        pytest.param(
            {"fix": [{"parameter": "A", "old": 5, "new": None}]},
            "remove A",
            id="a parameter to remove",
        ),
        pytest.param(
            {"fix": [{"parameter": "A", "old": 5, "new": Decimal("0.50")}]},
            "A = 0.50",
            id="an amount keeps its digits",
        ),
        pytest.param(
            {"fix": [], "alternatives": [WAY, [MODE]], "first_step": None},
            "A.B = 1",
            id="the first alternative",
        ),
        pytest.param(
            {"fix": [], "first_step": "Read the end of its log"},
            "Read the end of its log",
            id="the first step",
        ),
        pytest.param(
            {"fix": WAY, "first_step": "Read the end of its log"},
            "A.B = 1",
            id="a fix comes before the first step",
        ),
        pytest.param({"fix": [], "first_step": None}, None, id="neither fix nor first step"),
    ],
)
def test_a_fix_is_one_line(changes: dict[str, Any], text: str | None) -> None:
    """It has the fix's parameters, else those of the first alternative, else the first step in
    words.
    """
    assert fix_text(finding(**({"alternatives": []} | changes))) == text


def test_a_long_fix_is_cut_between_its_parameters() -> None:
    """Each line shown is complete, and the number of omitted lines is shown."""
    ways = [
        {"parameter": f"InputDataConfig[{n:02}].InputMode", "old": "File", "new": "FastFile"}
        for n in range(20)
    ]
    text = fix_text(finding(fix=ways)) or ""
    *shown, last = text.split("; ")
    assert [line for line in shown if not line.endswith('].InputMode = "FastFile"')] == []
    assert last == f"and {20 - len(shown)} more"
    assert 300 < len(text) < 420
    long = fix_text(finding(fix=[{"parameter": "A", "old": None, "new": "s3://" + "x" * 5_000}]))
    assert long is not None
    assert long.endswith("…")
    assert len(long) == 400
