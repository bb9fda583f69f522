"""Audits of jobs with known truth: what is found, missed and counted.

The tests check how often each rule is right, its agreement with an expert, and its false alarms on
healthy jobs. They also check all texts, and the pages and goldens that are made of these jobs.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import (
    AmountKind,
    FindingDocument,
    is_standing,
    recommendation_from_finding,
)
from sageaudit.output.text.headline import headline
from sageaudit.rules import catalogue
from sageaudit.rules.card import RequestCase
from sageaudit.structs import replace
from tests.golden import regenerate
from tests.labelled import confusion, simulated
from tests.labelled.audits import (
    audit_file,
    audit_in_turn,
    expert_documents,
    rules,
    story_jobs,
)
from tests.labelled.confusion import JudgedRule, below_the_bar, judged_recordings, judged_stories
from tests.labelled.expert import ExpertJob, expert_jobs, module_recordings
from tests.labelled.expert_comparison import DISAGREED, compared, recall
from tests.labelled.machine import one_host
from tests.labelled.stories.families import USUAL
from tests.labelled.stories.purchase import CHECKPOINTS
from tests.labelled.story import BUSY_A10G, FAMILY, ONE, runs, stories_of_kind
from tests.labelled.track_records import track_records
from tools.pages.track_record import FILE, load_records, section, to_text

EXPERTS = [job.name for job in expert_jobs()]
TOO_MUCH = Decimal("1.05")
AT_MOST_PERCENT = 10
"""Highest share of healthy jobs of a kind that a rule may report (our choice)."""
NOTHING_PERCENT = 6
"""Experts allow this share of a healthy job's bill for waiting at its start or end."""
ONCE = {rule.info.name for rule in catalogue.load() if rule.report_once_per_family}
MISSED = JudgedRule("a hung run 1", "gpu-idle", truth=True, is_reported=False)


@pytest.mark.parametrize("name", [n for n in regenerate.goldens() if n.startswith("labelled/")])
def test_golden(name: str) -> None:
    """The tables equal their golden files."""
    assert regenerate.goldens()[name]() == (regenerate.HERE / name).read_text(encoding="utf-8")


def test_a_rule_has_stories_in_which_it_is_true_and_others() -> None:
    """Each rule has stories in which it is right, and others in which it is not."""
    truths = {(judged_rule.rule, judged_rule.truth) for judged_rule in judged_stories()}
    assert truths == {(rule, truth) for rule in rules() for truth in (True, False)}


def test_every_rule_is_right_nineteen_times_of_twenty() -> None:
    """Every rule has 95% precision and recall; the golden file has the table."""
    assert below_the_bar(judged_stories()) == []


def test_a_rule_under_the_bar_is_named_with_the_stories_that_it_gets_wrong() -> None:
    """A rule passes at exactly 95%; below, it is named with the stories it gets wrong."""
    right = [JudgedRule(f"story {n}", "gpu-idle", truth=True, is_reported=True) for n in range(19)]
    alarm = JudgedRule("a busy run 2", "gpu-idle", truth=False, is_reported=True)
    assert below_the_bar([*right, MISSED, alarm]) == []
    [below] = below_the_bar([*right[1:], MISSED, alarm])
    assert below == (
        "gpu-idle: precision 95% and recall 95%, under 95%: "
        "not found on a hung run 1, found on a busy run 2"
    )


def test_most_dollars_proven_by_another_author_are_counted() -> None:
    """At least 94% of proven dollars are counted, and at most 5% are above the tolerated ones."""
    sums = simulated.by_kind()
    whole, healthy = sums["together"], sums["healthy"]
    assert whole.right_usd >= Decimal("0.94") * whole.proven_usd
    assert whole.above_usd <= Decimal("0.05") * whole.counted_usd
    assert (healthy.cases, healthy.proven_usd) == (41, 0)


def test_no_golden_file_is_written_of_a_rule_under_the_bar(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`make golden` fails with the story's name and writes no file."""
    monkeypatch.setattr(confusion, "judged_stories", lambda: (MISSED,))
    monkeypatch.setattr(regenerate, "HERE", tmp_path)
    with pytest.raises(SystemExit, match=r"gpu-idle: recall 0%.* not found on a hung run 1"):
        regenerate.main()
    assert list(tmp_path.iterdir()) == []


def test_real_jobs_are_judged_as_their_own_records_say() -> None:
    """If a real job's record leaves no doubt, the rule agrees with it."""
    assert [
        judged_rule
        for judged_rule in judged_recordings()
        if judged_rule.truth != judged_rule.is_reported
    ] == []


@pytest.mark.parametrize("name", EXPERTS)
def test_a_job_is_judged_as_an_expert_would(name: str) -> None:
    """Dollars and idle hours are within the expert's bounds, and the right topics are reported.

    Differences are listed with their reasons and must leave the list once they are gone. No more
    may be counted than was wasted: users forgive missed waste, but never invented waste.
    """
    comparison, (points, _) = compared(name), DISAGREED.get(name, ((), ""))
    assert comparison.differs == points, comparison.job.expert_says
    if comparison.wasted_usd is not None:
        assert comparison.counted_usd <= comparison.wasted_usd[1] * TOO_MUCH + 1


def test_most_of_the_certain_dollars_are_counted() -> None:
    """80% of certain dollars are counted, and 90% with upper ends and possible dollars."""
    shares = recall()
    assert shares.counted >= Decimal("0.8")
    assert shares.with_upper_ends >= Decimal("0.9")


def test_every_verdict_has_its_recordings_and_none_is_left_over() -> None:
    """Each verdict has its recordings: several for a family, one for any other job."""
    jobs = expert_jobs()
    recorded = [
        name for module in {job.module for job in jobs} for name in module_recordings(module)
    ]
    assert sorted(recorded) == sorted(job.name for job in jobs)
    assert all(job.is_family == (len(job.recordings) > 1) for job in jobs)


def test_differences_are_about_existing_jobs() -> None:
    """There are 141 jobs and families, and only these are listed as different."""
    assert len(EXPERTS) == 141
    assert set(DISAGREED) <= set(EXPERTS)


def test_the_packaged_records_are_those_of_the_labelled_jobs() -> None:
    """The packaged track records are those that `make docs` measures."""
    assert FILE.read_text(encoding="utf-8") == to_text(track_records())


def test_a_page_shows_a_reported_job_and_a_silent_one() -> None:
    """Each rule's page shows a job that it reports and one that it does not; requests have none."""
    for rule in catalogue.load():
        if rule.scope is RequestCase:
            continue
        record = load_records()[rule.info.name]
        assert record.fires, rule.info
        assert record.fires.says, f"add a story of {rule.info} to tests/labelled/stories"
        assert record.silent, rule.info
        assert record.silent.says is None
        shown = "\n".join(section(record))
        assert record.fires.says in shown
        assert record.silent.job in shown


def is_healthy(job: ExpertJob) -> bool:
    """Whether the expert has nothing to report about the single job, and no dollars."""
    if job.is_family or job.must_say or not job.avoidable_usd or not job.lost_usd:
        return False
    most = (job.bill_usd or 0) * NOTHING_PERCENT / 100
    return job.avoidable_usd[1] <= most and job.lost_usd[1] == 0


def healthy() -> Iterator[AuditDocument]:
    """Yields the audits of all healthy labelled jobs with default rules; for a roll-up its jobs."""
    documents = [expert_documents(job.name)[0] for job in expert_jobs() if is_healthy(job)]
    documents += [
        audit_file(story.recordings(1)[0]) for story in stories_of_kind(ONE) if not story.must_find
    ]
    fine = {f"{story.name} 1" for story in stories_of_kind(FAMILY) if not story.must_find}
    documents += [job.document for job in story_jobs() if job.name in fine]
    for document in documents:
        yield from (document["children"] or ()) if document["rollup"] else (document,)


def test_no_rule_reports_more_than_a_tenth_of_the_healthy_jobs() -> None:
    """No rule reports more than 10% of healthy jobs, except rules that report once per family."""
    jobs = list(healthy())
    kinds = Counter(document["job"]["kind"] for document in jobs)
    assert kinds["training"] >= 40
    assert set(kinds) == {"training", "processing", "transform"}
    reports = Counter(
        (finding["rule"], document["job"]["kind"])
        for document in jobs
        for finding in document["findings"]
        if is_standing(finding)
    )
    loud = {
        (rule, kind): f"{count} of {kinds[kind]}"
        for (rule, kind), count in reports.items()
        if rule not in ONCE and 100 * count > AT_MOST_PERCENT * kinds[kind]
    }
    assert loud == {}


def test_a_setting_is_reported_for_a_familys_first_run_only() -> None:
    """The second run's findings and possible dollars are the same, marked as reported before."""
    usual = replace(USUAL, hosts=one_host(replace(BUSY_A10G, minutes=320)), describe=CHECKPOINTS)
    first, second = (
        audit_in_turn(runs([usual] * count, 1, every=timedelta(days=1)))[-1] for count in (1, 2)
    )
    first_reports = {finding["rule"]: finding["reported_for_run"] for finding in first["findings"]}
    second_reports = {
        finding["rule"]: finding["reported_for_run"] for finding in second["findings"]
    }
    assert "spot-not-used" in first_reports
    assert first_reports.keys() == second_reports.keys()
    assert set(first_reports.values()) == {None}
    assert {second_reports[rule] for rule in ONCE & second_reports.keys()} == {first["job"]["name"]}
    assert first["possible_usd"] == second["possible_usd"]
    assert first["possible_usd"]


def findings() -> Iterator[FindingDocument]:
    """Returns the shown findings of all labelled jobs."""
    return (
        finding
        for job in story_jobs()
        for finding in job.document["findings"]
        if is_standing(finding)
    )


def test_a_finding_without_a_parameter_says_what_to_do_first() -> None:
    """A finding without a fix has a short first step, on one line."""
    without = [finding for finding in findings() if not (finding["fix"] or finding["alternatives"])]
    assert len({finding["rule"] for finding in without}) > 8
    for finding in without:
        assert finding["first_step"], finding["rule"]
        assert len(finding["first_step"]) < 400
        assert "\n" not in finding["first_step"]


def test_another_type_beside_the_first_has_its_dollars() -> None:
    """An alternative type has its dollars, at most those of the first type."""
    compared = 0
    for finding in findings():
        ways = [
            way for way in finding["alternatives"] if way[0]["parameter"].endswith("InstanceType")
        ]
        if (
            finding["bucket"] == "avoidable"
            and ways
            and finding["fix"][0]["parameter"].endswith("InstanceType")
        ):
            [second] = finding["alternatives_usd"]
            assert second is not None, finding["rule"]
            assert 0 < second <= (finding["saving_alone_usd"] or 0), finding["rule"]
            compared += 1
    assert compared > 20


def test_a_caution_does_not_take_back_what_is_counted() -> None:
    """Only a finding without counted dollars may say that nothing is counted."""
    for finding in findings():
        if finding["saving_usd"] and finding["bucket"] != "possible":
            for words in ("othing is counted", "none of it is counted", "nothing is saved"):
                assert words not in (finding["caution"] or ""), finding["summary"]


def test_no_dollar_of_a_run_is_in_two_recommendations() -> None:
    """So the amounts of recommendations can be added up, those of each kind apart."""
    recommendation_count = 0
    for job in story_jobs():
        document, amounts = job.document, dict.fromkeys(AmountKind, Decimal(0))
        for finding in document["findings"]:
            if recommended := recommendation_from_finding(finding):
                amounts[recommended.amount_kind] += recommended.amount or 0
                recommendation_count += 1
        most_usd = (document["avoidable_usd"] or 0) + (document["lost_up_to_usd"] or 0)
        assert amounts[AmountKind.COUNTED] <= most_usd, job.name
        assert amounts[AmountKind.POSSIBLE] <= (document["possible_usd"] or 0), job.name
    assert recommendation_count > len(story_jobs()) / 2


def test_no_headline_says_none_if_a_trial_may_save() -> None:
    """A headline does not begin with "none" if dollars are possible, and it names them."""
    tried = 0
    for job in story_jobs():
        if (job.document["possible_usd"] or 0) >= 1:
            assert not headline(job.document).startswith("none"), job.name
            tried += "a trial run may save" in headline(job.document)
    assert tried > 5
