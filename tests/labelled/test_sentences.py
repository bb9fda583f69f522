"""What is true of every sentence of the labelled jobs, whichever rule wrote it."""

from __future__ import annotations

from collections.abc import Iterator

from sageaudit.domain.audit.finding_document import FindingDocument, stands
from sageaudit.output.text.headline import headline
from tests.labelled.audits import of_stories

TYPE = "InstanceType"


def findings() -> Iterator[FindingDocument]:
    """Those that stand, of every labelled job."""
    return (one for job in of_stories() for one in job.document["findings"] if stands(one))


def test_a_finding_without_a_parameter_says_what_to_do_first() -> None:
    """What its page begins with, on one line."""
    without = [one for one in findings() if not (one["fix"] or one["alternatives"])]
    assert len({one["rule"] for one in without}) > 8
    for one in without:
        assert one["first_step"], one["rule"]
        assert len(one["first_step"]) < 400
        assert "\n" not in one["first_step"]


def test_another_type_beside_the_first_has_its_dollars() -> None:
    """They are never more than those of the first, which is the best."""
    compared = 0
    for one in findings():
        ways = [way for way in one["alternatives"] if way[0]["parameter"].endswith(TYPE)]
        if one["bucket"] == "avoidable" and ways and one["fix"][0]["parameter"].endswith(TYPE):
            [second] = one["alternatives_usd"]
            assert second is not None, one["rule"]
            assert 0 < second <= (one["saving_alone_usd"] or 0), one["rule"]
            compared += 1
    assert compared > 20


def test_a_caution_does_not_take_back_what_is_counted() -> None:
    """Only a finding of which nothing is counted says so."""
    for one in findings():
        if one["saving_usd"] and one["bucket"] != "possible":
            for words in ("othing is counted", "none of it is counted", "nothing is saved"):
                assert words not in (one["caution"] or ""), one["summary"]


def test_no_headline_says_none_where_a_sum_is_worth_a_trial() -> None:
    """And it says the dollars."""
    tried = 0
    for job in of_stories():
        if (job.document["possible_usd"] or 0) >= 1:
            assert not headline(job.document).startswith("none"), job.name
            tried += "worth a trial" in headline(job.document)
    assert tried > 5
