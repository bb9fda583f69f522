"""Five simulated jobs that were once reported wrongly, audited as the command line does."""

import json
from decimal import Decimal
from pathlib import Path

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.output.text.fix_code import fix_text
from tests.labelled.audits import audit_file, story_document
from tests.labelled.machine import Json
from tests.labelled.story import labelled

_CASES = Path(__file__).parent / "idle_cases"


def recorded(name: str) -> Json:
    """Returns one of the recordings."""
    loaded: Json = json.loads((_CASES / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def finding(document: AuditDocument, rule: str) -> FindingDocument:
    """Returns the rule's finding."""
    return next(candidate for candidate in document["findings"] if candidate["rule"] == rule)


def cents(usd: Decimal | None) -> Decimal | None:
    """Rounds to cents."""
    return None if usd is None else round(usd, 2)


def test_a_hang_that_a_limit_ended_was_idle_first_and_gets_no_longer_limit() -> None:
    """The whole bill is lost once, and the fix is checkpoints, not a longer limit."""
    document = audit_file(recorded("hang-limit-g5"))
    found = finding(document, "limit-hit")
    assert found["summary"].startswith("The run was idle from minute 56 on, for 11 h 3 min. ")
    assert (found["first_step"] or "").startswith("Read its log after 56 min to see what it waited")
    assert [one["parameter"] for one in found["fix"]] == ["CheckpointConfig.S3Uri"]
    assert "MaxRuntime" not in fix_text("training", found["fix"], "boto3")
    assert cents(document["lost_usd"]) == cents(document["bill"]["total_usd"]) == Decimal("16.97")
    assert document["avoidable_usd"] == 0


def test_a_run_that_slept_before_it_failed_says_so_first() -> None:
    """If it completed, its idle end is avoidable; if it failed, the whole bill is lost."""
    slept = recorded("failed-after-sleeping")
    assert cents(audit_file(slept)["avoidable_usd"]) == Decimal("3.70")
    describe = slept["describe"]
    del describe["ModelArtifacts"]
    describe |= {"TrainingJobStatus": "Failed", "SecondaryStatus": "Failed"}
    describe["FailureReason"] = "AlgorithmError: ExecuteUserScriptError: exit code 1"
    document = audit_file(slept)
    found = finding(document, "failed-spend")
    assert found["summary"].startswith("The run was idle from minute 5 on, for 7 h 55 min. ")
    assert (found["first_step"] or "").startswith("Read its log after 5 min to see what it waited")
    assert cents(document["lost_usd"]) == cents(document["bill"]["total_usd"]) == Decimal("3.76")
    assert document["avoidable_usd"] == 0


def test_hosts_of_a_transform_job_move_to_another_gpu_as_one_host_does() -> None:
    """Two hosts with V100 at 6% save twice what one host saves."""
    two = recorded("transform-two-hosts-p3")
    document = audit_file(two)
    assert cents(document["avoidable_usd"]) == Decimal("8.00")
    assert finding(document, "old-generation")["fix"][0]["new"] == "ml.g4dn.xlarge"
    two["describe"]["TransformResources"]["InstanceCount"] = 1
    two["metrics"]["series"] = [
        line for line in two["metrics"]["series"] if line["host"].endswith("ffee0")
    ]
    alone = audit_file(two)["avoidable_usd"]
    assert alone is not None
    assert cents(2 * alone) == Decimal("8.00")


def test_an_evaluation_on_one_core_is_no_hang() -> None:
    """Three regular spells of 44 minutes on one core: nothing counts, and $15.60 are possible."""
    document = audit_file(recorded("evaluation-on-one-core"))
    reported = finding(document, "idle-middle")
    assert document["avoidable_usd"] == 0
    assert reported["bucket"] == "possible"
    low, high = reported["saving_range_usd"] or (None, None)
    assert (cents(low), cents(high)) == (0, Decimal("15.60"))
    assert (reported["first_step"] or "").startswith("If the core runs an evaluation, do that less")
    assert "timeout" not in json.dumps(reported, default=str)


def test_a_cluster_of_several_types_whose_hosts_all_work_wastes_nothing() -> None:
    """Each type was judged, so the avoidable cost is 0 and not unknown."""
    [story] = [story for story in labelled() if story.name == "feeding-hosts-at-work"]
    document = story_document(story, 1)
    assert (document["judged"], document["avoidable_usd"]) == ("partly", 0)
