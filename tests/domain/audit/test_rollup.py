from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.document import document as document_of
from sageaudit.domain.audit.rollup import job_of_children, roll_up
from sageaudit.domain.audit.trials import TrialSavings
from sageaudit.domain.bill.counterfactual import Severities, SeverityLimits
from sageaudit.domain.bill.finding import Bucket, Confidence, Finding, Found, RuleName, Severity
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.documents import (
    GUESSED,
    TUNING_ARN,
    document,
    finding,
    trial,
    type_finding,
)

NOTHING_OWN = TrialSavings(())


def up(
    *children: AuditDocument,
    launched: int | None = None,
    severities: Severities | None = None,
    own: TrialSavings = NOTHING_OWN,
) -> AuditDocument:
    """The tuning job's own document."""
    audit = roll_up(
        Job(JobKind.TUNING, "sweep-7", TUNING_ARN, "111122223333", "us-east-1", "Completed"),
        children,
        family=TUNING_ARN,
        owner=None,
        launched=launched,
        severities=severities or Severities(),
        ruleset="r",
        policy="p",
        outcomes=(),
        own=own,
    )
    return document_of(audit, children)


def test_a_roll_up_adds_its_children_and_is_marked() -> None:
    """Cost and savings are sums; the mark keeps them out of every other sum."""
    whole = up(trial(1, "5.10", "1.70"), trial(2, "5.20", "2.10"), trial(3, "2.00", None),
               launched=3)  # fmt: skip
    assert whole["rollup"] is True
    assert whole["bill"]["total_usd"] == Decimal("12.30")
    assert whole["avoidable_usd"] == Decimal("3.80")
    assert (whole["bill"]["complete"], whole["audit"]["settled"]) == (True, True)
    assert len(whole["children"] or []) == 3


def test_one_finding_stands_for_one_rule_of_all_children() -> None:
    """With the sum of their shares, the number of children, and a severity of its own."""
    whole = up(trial(1, "5.10", "4.70"), trial(2, "9.20", "6.10"), trial(3, "2.00", None),
               launched=3)  # fmt: skip
    [merged] = whole["findings"]
    assert merged["rule"] == "gpu-underused"
    assert merged["saving_usd"] == Decimal("10.80")
    assert merged["severity"] == "medium"  # from $10
    assert merged["evidence"]["training_jobs"] == 2
    assert merged["summary"].startswith("In 2 of 3 training jobs")


@pytest.mark.parametrize(
    ("shares", "severity"),
    [
        (("60", "40"), "high"),
        (("60", "39.99"), "medium"),
        (("6", "4"), "medium"),
        (("6", "3.99"), "low"),
    ],
)
def test_the_sum_of_the_shares_decides_the_severity(shares: tuple[str, ...], severity: str) -> None:
    """Exactly $100 is high and exactly $10 medium, whatever the children's own severities."""
    whole = up(*(trial(n, "200", share) for n, share in enumerate(shares)), launched=2)
    assert whole["findings"][0]["severity"] == severity


def test_the_policys_limits_decide() -> None:
    """A policy that calls $2 high makes the merged finding high."""
    limits = SeverityLimits(high_usd=Decimal(2), medium_usd=Decimal(1))
    whole = up(trial(1, "5", "1"), trial(2, "5", "1"), launched=2, severities=Severities(limits))
    assert whole["findings"][0]["severity"] == "high"


@pytest.mark.parametrize("share", ["0.50", "500"])
def test_a_merged_finding_has_the_severity_that_the_policy_gives_its_rule(share: str) -> None:
    """The override is stronger than dollars, as for one job."""
    fixed = Severities(by_rule={"gpu-underused": Severity.MEDIUM})
    whole = up(trial(1, "900", share), launched=1, severities=fixed)
    assert whole["findings"][0]["severity"] == "medium"


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({"saving_usd": None, "severity": "high"}, "low"),
        ({"saving_usd": None, "severity": "info"}, "info"),
        ({"bucket": "possible", "saving_usd": Decimal(500)}, "low"),
        ({"bucket": "none", "saving_usd": None, "severity": "high"}, "info"),
        ({"saving_usd": Decimal(0), "saving_range_usd": [Decimal(0), Decimal(3)]}, "low"),
        ({"saving_usd": Decimal(0), "saving_range_usd": None}, "info"),
    ],
)
def test_without_counted_dollars_the_severity_is_as_for_one_job(
    changes: dict[str, Any], severity: str
) -> None:
    """Unknown dollars are low, advice without dollars is information, a trial is low at most."""
    whole = up(document(findings=[type_finding(**changes)]), launched=1)
    assert whole["findings"][0]["severity"] == severity


def test_unknown_avoidable_dollars_leave_the_known_ones_and_say_so() -> None:
    """The known part stands, as it is at least that much; the roll-up was judged in part only."""
    half = document(avoidable_usd=None, lost_usd=Decimal(2), possible_usd=Decimal(1))
    whole = up(half, document(lost_usd=Decimal(3), possible_usd=Decimal(4)), launched=2)
    assert (whole["avoidable_usd"], whole["judged"]) == (Decimal("2.035"), "partly")
    assert whole["not_judged"] == ["In 1 of 2 training jobs: Its avoidable dollars are not known."]
    assert (whole["lost_usd"], whole["possible_usd"]) == (Decimal(5), Decimal(5))


def test_a_roll_up_of_jobs_that_nothing_judged_is_not_judged() -> None:
    """No avoidable dollars are known, so there is no sum of them."""
    why = "The use of its machines was not judged: CloudWatch has no points."
    child = document(avoidable_usd=None, judged="no", not_judged=[why])
    whole = up(child, child, launched=2)
    assert (whole["avoidable_usd"], whole["judged"]) == (None, "no")
    assert whole["not_judged"] == [f"In 2 of 2 training jobs: {why}"]
    assert whole["lost_usd"] == 0


@pytest.mark.parametrize("judged", ["no", "partly"])
def test_one_job_that_was_not_judged_leaves_the_sum_of_the_others(judged: str) -> None:
    """The sum is of what is known, and says that something is missing."""
    usd = None if judged == "no" else Decimal(0)
    other = document(avoidable_usd=usd, judged=judged, not_judged=["It was too short."])
    whole = up(document(), other, launched=2)
    assert (whole["avoidable_usd"], whole["judged"]) == (Decimal("2.035"), "partly")
    assert len(whole["not_judged"]) == 1


def test_a_training_job_without_an_audit_was_not_judged() -> None:
    """The roll-up of two audited jobs of three is one of a part."""
    whole = up(document(), document(), launched=3)
    assert (whole["judged"], whole["not_judged"]) == (
        "partly",
        ["1 of 3 training jobs is not audited."],
    )


def test_many_reasons_are_a_handful_of_sentences() -> None:
    """The most frequent reasons come first; jobs that differ only by figures are one reason."""
    words = ("one", "two", "three", "four", "five", "six", "seven")
    children = [
        document(judged="no", avoidable_usd=None, not_judged=[f"Reason {word}.", f"Ran {n} min."])
        for n, word in enumerate(words)
    ]
    said = up(*children, launched=7)["not_judged"]
    assert len(said) == 5
    assert said[0] == "In 7 of 7 training jobs: Ran 0 min."
    assert said[-1] == "4 more reasons are in the training jobs' own audits."


def test_findings_without_dollars_of_their_own_are_not_merged() -> None:
    """Exempt, superseded and subsumed ones stay with their child."""
    quiet = [
        type_finding(superseded_by="x"),
        finding(subsumed_by="y"),
        finding(rule="z", exempt={"by": "ana", "until": None, "reason": "ok"}),
    ]
    assert up(document(findings=quiet), launched=1)["findings"] == []


def test_a_child_that_is_not_audited_leaves_it_open() -> None:
    """Incomplete, unsettled, and it says how many are missing."""
    whole = up(trial(1, "5.10", None), launched=3)
    assert (whole["bill"]["complete"], whole["audit"]["settled"]) == (False, False)
    assert whole["bill"]["missing"] == ["2 of 3 training jobs are not audited"]
    assert whole["bill"]["total_usd"] == Decimal("5.10")


def test_a_child_without_known_cost_makes_the_sum_unknown() -> None:
    """Half a sum is no sum."""
    unpriced = trial(2, "1.00", None)
    unpriced["bill"]["total_usd"] = None
    whole = up(trial(1, "5.10", None), unpriced, launched=2)
    assert whole["bill"]["total_usd"] is None
    assert whole["bill"]["missing"] == ["1 of 2 training jobs have no known cost"]
    assert whole["waterfall"] == []


def test_a_tuning_job_that_launched_nothing_cost_nothing() -> None:
    """Its counters say 0: that is known, like a job that never started."""
    whole = up(launched=0)
    assert (whole["bill"]["total_usd"], whole["bill"]["complete"]) == (0, True)
    assert (whole["avoidable_usd"], whole["lost_usd"]) == (0, 0)


def test_nobody_knows_what_was_launched() -> None:
    """Unknown, not 0."""
    whole = up(launched=None)
    assert (whole["bill"]["total_usd"], whole["bill"]["complete"]) == (None, False)


@pytest.mark.parametrize("launched", [2, None])
def test_the_waterfall_sums_to_the_children(launched: int | None) -> None:
    """Slice by slice, the rest last."""
    first, second = document(), document()
    first["waterfall"] = [
        {"slice": "avoidable: a", "usd": Decimal("1.5")},
        {"slice": "rest", "usd": Decimal("3.0534")},
    ]
    second["waterfall"] = [
        {"slice": "lost: b", "usd": Decimal("0.5534")},
        {"slice": "rest", "usd": Decimal(4)},
    ]
    whole = up(first, second, launched=launched)
    assert whole["waterfall"] == [
        {"slice": "avoidable: a", "usd": Decimal("1.5")},
        {"slice": "lost: b", "usd": Decimal("0.5534")},
        {"slice": "rest", "usd": Decimal("7.0534")},
    ]
    assert sum(part["usd"] for part in whole["waterfall"]) == whole["bill"]["total_usd"]


def test_a_possible_saving_of_the_tuning_job_is_no_slice_of_its_bill() -> None:
    """Counted shares are taken from the rest; a trial's dollars are in no sum with them."""
    shares = {Bucket.AVOIDABLE: Decimal(1), Bucket.POSSIBLE: Decimal(2)}
    own = TrialSavings(tuple(tuning_finding(bucket, usd) for bucket, usd in shares.items()))
    child = document(waterfall=[{"slice": "rest", "usd": Decimal("4.5534")}])
    whole = up(child, launched=1, own=own)
    assert whole["waterfall"] == [
        {"slice": "avoidable: tuning-avoidable", "usd": Decimal(1)},
        {"slice": "rest", "usd": Decimal("3.5534")},
    ]
    assert whole["possible_usd"] == Decimal("2.9")


def tuning_finding(bucket: Bucket, usd: Decimal) -> Finding:
    """A finding on the tuning job itself, with its share."""
    rule = RuleName("SA901", f"tuning-{bucket.value}")
    found = Found(Confidence.DERIVED, bucket, "so", {})
    return Finding(rule, found, Severity.LOW, usd, usd, None)


def test_a_set_of_children_names_its_tuning_job() -> None:
    """Where the tuning job's own answer was not recorded."""
    named = job_of_children([trial(1, "1", None), trial(2, "1", None)])
    assert (named.name, named.arn, named.kind) == ("sweep-7", TUNING_ARN, JobKind.TUNING)
    assert named.parent is None


def test_one_estimate_makes_the_roll_up_an_estimate() -> None:
    """With the number of training jobs; it is settled all the same."""
    guess = trial(1, "5.10", "1.70")
    guess["bill"] |= {"estimated": [GUESSED], "missing": [GUESSED], "complete": False,
                      "price_kind": "estimate"}  # fmt: skip
    guess["findings"][0]["estimated"] = True
    whole = up(guess, trial(2, "5.20", "2.10"), launched=2)
    said = "1 of 2 training jobs are billed at an estimated rate"
    assert (whole["bill"]["estimated"], whole["bill"]["missing"]) == ([said], [said])
    assert (whole["bill"]["complete"], whole["audit"]["settled"]) == (False, True)
    assert whole["bill"]["price_kind"] == "estimate"
    assert [one["estimated"] for one in whole["findings"]] == [True]


def test_what_the_bills_of_training_jobs_lack_is_said_once() -> None:
    """A region without a storage price leaves no roll-up silently incomplete."""
    lacks = "storage: no ML storage price for eu-west-3 (Training)"
    children = [trial(number, "5.10", "1.70") for number in (1, 2, 3)]
    for child in children[:2]:
        child["bill"] |= {"missing": [lacks], "complete": False}
    whole = up(*children, launched=3)
    assert whole["bill"]["missing"] == [f"in 2 of 3 training jobs, {lacks}"]
    assert whole["bill"]["complete"] is False
    assert (whole["audit"]["settled"], whole["audit"]["coverage"]["missing"]) == (True, [])
