from decimal import Decimal
from typing import Any, cast

import pytest

from sageaudit.domain.audit.document import AuditDocument, SliceDocument
from sageaudit.domain.audit.document import document as document_of
from sageaudit.domain.audit.rollup import roll_up, rollup_job_from_children
from sageaudit.domain.audit.trials import TrialSavings
from sageaudit.domain.bill.bill import UPPER_BOUND
from sageaudit.domain.bill.counterfactual import Severities, SeverityLimits
from sageaudit.domain.bill.finding import Bucket, Confidence, Detection, Finding, RuleInfo, Severity
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.text.amounts import document_amounts
from sageaudit.output.text.finding import saving_figure
from tests.fakes.documents import document, finding
from tests.fakes.sample_documents import ESTIMATE_NOTE, TUNING_ARN, trial

NOTHING_OWN = TrialSavings(())


def slices(**usd: str) -> list[SliceDocument]:
    """Returns a waterfall: the avoidable part of each rule, by its name with underscores, and the
    rest.
    """
    rules = {name: f"avoidable: {name.replace('_', '-')}" for name in usd if name != "rest"}
    return [{"slice": rules.get(name, name), "usd": Decimal(part)} for name, part in usd.items()]


def rolled_up(
    *children: AuditDocument,
    launched: int | None = None,
    severities: Severities | None = None,
    own_savings: TrialSavings = NOTHING_OWN,
) -> AuditDocument:
    """Returns the tuning job's own document."""
    audit = roll_up(
        Job(JobKind.TUNING, "sweep-7", TUNING_ARN, "111122223333", "us-east-1", "Completed"),
        children,
        family=TUNING_ARN,
        owner=None,
        launched_count=launched,
        severities=severities or Severities(),
        ruleset="r",
        policy="p",
        outcomes=(),
        own_savings=own_savings,
    )
    return document_of(audit, children)


def test_a_roll_up_adds_its_children_and_is_marked() -> None:
    """Cost and savings are sums. The mark keeps them out of every other sum."""
    whole = rolled_up(
        trial(1, "5.10", "1.70"), trial(2, "5.20", "2.10"), trial(3, "2.00", None), launched=3
    )
    assert whole["rollup"] is True
    assert whole["bill"]["total_usd"] == Decimal("12.30")
    assert whole["avoidable_usd"] == Decimal("3.80")
    assert (whole["bill"]["complete"], whole["audit"]["settled"]) == (True, True)
    assert len(whole["children"] or []) == 3


def test_the_findings_of_a_rule_are_merged_over_all_children() -> None:
    """It has the sum of their shares, the number of children, and a severity of its own."""
    whole = rolled_up(
        trial(1, "5.10", "4.70"), trial(2, "9.20", "6.10"), trial(3, "2.00", None), launched=3
    )
    [merged] = whole["findings"]
    assert merged["rule"] == "gpu-underused"
    assert merged["saving_usd"] == Decimal("10.80")
    assert merged["severity"] == "medium"  # from $10
    assert merged["evidence"]["training_jobs"] == 2
    assert merged["summary"].startswith("In 2 of 3 training jobs")


PLAIN = Severities()
FIXED = Severities(by_rule={"gpu-underused": Severity.MEDIUM})
LOWER = Severities(SeverityLimits(high_usd=Decimal(2), medium_usd=Decimal(1)))
UNKNOWN: dict[str, Any] = {"saving_usd": None}
NOTHING_COUNTED: dict[str, Any] = {"saving_usd": Decimal(0)}


@pytest.mark.parametrize(
    ("children", "severities", "severity"),
    [
        # exactly $100 is high and exactly $10 medium, whatever the children's own severities
        ([trial(1, "200", "60"), trial(2, "200", "40")], PLAIN, "high"),
        ([trial(1, "200", "60"), trial(2, "200", "39.99")], PLAIN, "medium"),
        ([trial(1, "200", "6"), trial(2, "200", "4")], PLAIN, "medium"),
        ([trial(1, "200", "6"), trial(2, "200", "3.99")], PLAIN, "low"),
        # the policy's limits decide, and what it gives a rule is stronger than dollars
        ([trial(1, "5", "1"), trial(2, "5", "1")], LOWER, "high"),
        ([trial(1, "900", "0.50")], FIXED, "medium"),
        ([trial(1, "900", "500")], FIXED, "medium"),
        # unknown dollars are low, a finding without dollars is info, a trial is low at most
        *(
            ([document(findings=[finding("gpu-underused", **changes)])], PLAIN, severity)
            for changes, severity in (
                (UNKNOWN | {"severity": "high"}, "low"),
                (UNKNOWN | {"severity": "info"}, "info"),
                ({"bucket": "possible", "saving_usd": Decimal(500)}, "low"),
                (UNKNOWN | {"bucket": "none", "severity": "high"}, "info"),
                (NOTHING_COUNTED | {"saving_range_usd": [Decimal(0), Decimal(3)]}, "low"),
                (NOTHING_COUNTED | {"saving_range_usd": None}, "info"),
            )
        ),
    ],
)
def test_a_merged_finding_has_a_severity_of_its_own(
    children: list[AuditDocument], severities: Severities, severity: str
) -> None:
    """The severity depends on the sum of the shares, as for one job."""
    whole = rolled_up(*children, launched=len(children), severities=severities)
    assert whole["findings"][0]["severity"] == severity


def test_unknown_avoidable_dollars_leave_the_known_ones_and_say_so() -> None:
    """The known part is a lower bound, and the roll-up is judged in part only."""
    half = document(avoidable_usd=None, lost_usd=Decimal(2), possible_usd=Decimal(1))
    whole = rolled_up(half, document(lost_usd=Decimal(3), possible_usd=Decimal(4)), launched=2)
    assert (whole["avoidable_usd"], whole["judged"]) == (Decimal("2.035"), "partly")
    assert whole["not_judged"] == ["In 1 of 2 training jobs: Its avoidable dollars are not known."]
    assert (whole["lost_usd"], whole["possible_usd"]) == (Decimal(5), Decimal(5))


@pytest.mark.parametrize(
    ("parts", "possible"),
    [
        ((None, "1", "4"), Decimal(5)),
        ((None, "0"), None),
        (("0", "0"), Decimal(0)),
        ((None, None), None),
    ],
)
def test_an_unknown_possible_saving_does_not_count_as_0(
    parts: tuple[str | None, ...], possible: Decimal | None
) -> None:
    """The sum is that of the known figures. It is unknown if no figure is known."""
    open_trial = finding(rule="spot-not-used", bucket="possible", saving_usd=None)
    children = [
        document(possible_usd=usd and Decimal(usd), findings=[] if usd else [open_trial])
        for usd in parts
    ]
    assert rolled_up(*children, launched=len(children))["possible_usd"] == possible


BLIND = "The use of its machines was not judged: CloudWatch has no points."
UNJUDGED: dict[str, Any] = {"avoidable_usd": None, "judged": "no", "not_judged": [BLIND]}


SHORT = document(judged="partly", avoidable_usd=Decimal(0), not_judged=["Short."])


def assert_judged(
    *,
    children: list[AuditDocument],
    launched: int | None,
    avoidable_usd: str | None,
    judged: str,
    not_judged: str,
) -> None:
    """A training job that was not judged does not change the sum of the others."""
    whole = rolled_up(*children, launched=launched)
    assert whole["avoidable_usd"] == (None if avoidable_usd is None else Decimal(avoidable_usd))
    assert (whole["judged"], whole["not_judged"]) == (judged, [not_judged])


def test_none_was_judged_so_there_is_no_sum_of_avoidable_dollars() -> None:
    # no avoidable dollars are known, so there is no sum of them
    assert_judged(
        children=[document(**UNJUDGED)] * 2,
        launched=2,
        avoidable_usd=None,
        judged="no",
        not_judged=(f"In 2 of 2 training jobs: {BLIND}"),
    )


def test_one_of_two_was_judged_so_the_sum_is_of_what_is_known() -> None:
    # the sum is of what is known, and says that something is missing
    assert_judged(
        children=[document(), document(**UNJUDGED)],
        launched=2,
        avoidable_usd="2.035",
        judged="partly",
        not_judged=(f"In 1 of 2 training jobs: {BLIND}"),
    )


def test_one_was_too_short_to_judge() -> None:
    assert_judged(
        children=[document(), SHORT],
        launched=2,
        avoidable_usd="2.035",
        judged="partly",
        not_judged="In 1 of 2 training jobs: Short.",
    )


def test_one_was_not_audited() -> None:
    """One was not audited."""
    assert_judged(
        children=[document()] * 2,
        launched=3,
        avoidable_usd="4.07",
        judged="partly",
        not_judged="1 of 3 training jobs is not audited.",
    )


def test_none_was_audited() -> None:
    """None was audited."""
    assert_judged(
        children=[],
        launched=None,
        avoidable_usd=None,
        judged="no",
        not_judged="Its training jobs are not audited.",
    )


def test_many_reasons_become_a_few_sentences() -> None:
    """The most frequent reasons come first. Sentences that differ only in figures are one
    reason.
    """
    children = [
        document(judged="no", avoidable_usd=None, not_judged=[f"Reason {word}.", f"Ran {n} min."])
        for n, word in enumerate("abcdefg")
    ]
    sentences = rolled_up(*children, launched=7)["not_judged"]
    assert len(sentences) == 5
    assert sentences[0] == "In 7 of 7 training jobs: Ran 0 min."
    assert sentences[-1] == "4 more reasons are in the training jobs' own audits."


def test_findings_without_dollars_of_their_own_are_not_merged() -> None:
    """Exempt, superseded and subsumed findings stay with their child."""
    quiet = [
        finding("gpu-underused", superseded_by="x"),
        finding(subsumed_by="y"),
        finding(rule="z", exempt={"by": "ana", "until": None, "reason": "ok"}),
    ]
    assert rolled_up(document(findings=quiet), launched=1)["findings"] == []


def unpriced(document: AuditDocument) -> AuditDocument:
    """Returns the same job on a type without a known price."""
    return cast("AuditDocument", {**document, "bill": {**document["bill"], "total_usd": None}})


def assert_total(
    *,
    children: list[AuditDocument],
    launched: int | None,
    total_usd: str | None,
    missing: list[str],
) -> None:
    """If some training jobs are missing, the total says how many, and is not final."""
    whole = rolled_up(*children, launched=launched)
    assert whole["bill"]["total_usd"] == (None if total_usd is None else Decimal(total_usd))
    assert (whole["bill"]["missing"], whole["bill"]["complete"]) == (missing, not missing)
    assert whole["audit"]["settled"] is (not missing)
    if launched == 0:
        assert (whole["avoidable_usd"], whole["lost_usd"]) == (0, 0)
    if total_usd is None:
        assert whole["waterfall"] == []


def test_all_are_known() -> None:
    """All are known."""
    assert_total(
        children=[trial(1, "5.10", None)],
        launched=1,
        total_usd="5.10",
        missing=[],
    )


def test_two_of_three_are_not_audited() -> None:
    assert_total(
        children=[trial(1, "5.10", None)],
        launched=3,
        total_usd="5.10",
        missing=["2 of 3 training jobs are not audited"],
    )


def test_half_a_sum_is_no_sum() -> None:
    assert_total(
        children=[trial(1, "5.10", None), unpriced(trial(2, "1.00", None))],
        launched=2,
        total_usd=None,
        missing=["1 of 2 training jobs have no known cost"],
    )


def test_counters_of_0_are_known_like_a_job_that_never_started() -> None:
    # its counters say 0: that is known, like a job that never started
    assert_total(
        children=[],
        launched=0,
        total_usd="0",
        missing=[],
    )


def test_without_counters_the_training_jobs_are_not_known() -> None:
    assert_total(
        children=[],
        launched=None,
        total_usd=None,
        missing=["the training jobs that it launched are not known"],
    )


@pytest.mark.parametrize("launched", [2, None])
def test_the_waterfall_sums_to_the_children(launched: int | None) -> None:
    """Each slice is a sum, and the rest comes last."""
    lost = {"slice": "lost: b", "usd": Decimal("0.5534")}
    first = document(waterfall=slices(a="1.5", rest="3.0534"))
    second = document(waterfall=[lost, *slices(rest="4")])
    whole = rolled_up(first, second, launched=launched)
    avoidable, rest = slices(a="1.5", rest="7.0534")
    assert whole["waterfall"] == [avoidable, lost, rest]
    assert sum(part["usd"] for part in whole["waterfall"]) == whole["bill"]["total_usd"]


def test_a_possible_saving_of_the_tuning_job_is_not_a_slice_of_its_bill() -> None:
    """Counted shares are taken from the rest. The dollars of a trial are not added to them."""
    shares = {Bucket.AVOIDABLE: Decimal(1), Bucket.POSSIBLE: Decimal(2)}
    own = TrialSavings(tuple(tuning_finding(bucket, usd) for bucket, usd in shares.items()))
    whole = rolled_up(document(waterfall=slices(rest="4.5534")), launched=1, own_savings=own)
    assert whole["waterfall"] == slices(tuning_avoidable="1", rest="3.5534")
    assert whole["possible_usd"] == Decimal("2.9")


def tuning_finding(bucket: Bucket, usd: Decimal) -> Finding:
    """Returns a finding on the tuning job itself, with its share."""
    rule = RuleInfo("SA901", f"tuning-{bucket.value}")
    result = Detection(Confidence.DERIVED, bucket, "so", {})
    return Finding(rule, result, Severity.LOW, usd, usd, None)


def test_a_set_of_children_names_its_tuning_job() -> None:
    """The tuning job's own answer was not recorded."""
    named = rollup_job_from_children([trial(1, "1", None), trial(2, "1", None)])
    assert (named.name, named.arn, named.kind) == ("sweep-7", TUNING_ARN, JobKind.TUNING)
    assert named.parent is None


def test_one_estimate_makes_the_roll_up_an_estimate() -> None:
    """It names the number of training jobs. The audit can still be settled."""
    guess = trial(1, "5.10", "1.70")
    guess["bill"] |= {
        "estimated": [ESTIMATE_NOTE],
        "missing": [ESTIMATE_NOTE],
        "complete": False,
        "price_kind": "estimate",
    }
    guess["findings"][0]["estimated"] = True
    whole = rolled_up(guess, trial(2, "5.20", "2.10"), launched=2)
    sentences = "1 of 2 training jobs are billed at an estimated rate"
    assert (whole["bill"]["estimated"], whole["bill"]["missing"]) == ([sentences], [sentences])
    assert (whole["bill"]["complete"], whole["audit"]["settled"]) == (False, True)
    assert whole["bill"]["price_kind"] == "estimate"
    assert [item["estimated"] for item in whole["findings"]] == [True]


def test_missing_parts_of_the_training_jobs_bills_are_named_once() -> None:
    """Without a storage price in the region, the roll-up says that it is incomplete."""
    lacks = "storage: no ML storage price for eu-west-3 (Training)"
    children = [trial(number, "5.10", "1.70") for number in (1, 2, 3)]
    for child in children[:2]:
        child["bill"] |= {"missing": [lacks], "complete": False}
    whole = rolled_up(*children, launched=3)
    assert whole["bill"]["missing"] == [f"in 2 of 3 training jobs, {lacks}"]
    assert whole["bill"]["complete"] is False
    assert (whole["audit"]["settled"], whole["audit"]["coverage"]["missing"]) == (True, [])


BOUND: dict[str, Any] = {"basis": "upper_bound", "complete": False, "missing": [UPPER_BOUND]}
NO_STORAGE = "storage: no ML storage price for us-east-1 (Training)"


@pytest.mark.parametrize(
    ("bills", "word", "spelled"),
    [
        ([{}, {}], "exact", "$10.30"),
        ([BOUND, BOUND], "up_to", "up to $10.30"),
        ([BOUND, {}], "up_to", "up to $10.30"),
        ([{}, {"complete": False, "missing": [NO_STORAGE]}], "at_least", "$10.30 or more"),
        ([BOUND, {"complete": False, "missing": [NO_STORAGE]}], "about", "about $10.30"),
    ],
)
def test_the_cost_of_a_tuning_job_is_as_exact_as_those_of_its_jobs(
    bills: list[dict[str, Any]], word: str, spelled: str
) -> None:
    """A sum of lower and upper bounds is neither of them."""
    children = [trial(1, "5.10", None), trial(2, "5.20", None)]
    for child, changes in zip(children, bills, strict=True):
        child["bill"].update(cast("Any", changes))
    whole = rolled_up(*children, launched=2)
    assert whole["bill"]["spend_qualifier"] == word
    assert str(document_amounts(whole).spend) == spelled


def test_the_upper_ends_of_ranges_are_summed() -> None:
    """A range of one training job is a range of the tuning job."""
    span = [Decimal(0), Decimal("4.09")]
    maybe = finding(saving_usd=Decimal(0), saving_range_usd=span)
    children = [trial(1, "5.10", None), trial(2, "5.20", None)]
    for child in children:
        child["findings"] = [maybe]
    [result] = rolled_up(*children, launched=2)["findings"]
    assert str(saving_figure(result)) == "up to $8.18"
