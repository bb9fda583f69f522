"""`make synth`: the app as it deploys, with the real asset; no Docker, and no AWS."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from infra import assembly
from infra.bundling import load_policy
from infra.settings import BadSetting
from tests.infra.reading import OTHER_KEY, OTHER_TOPIC, OWN_KEY, REFUSED, of_type, read, statements


def test_the_app_writes_the_same_template_with_the_real_asset(templates: Path) -> None:
    """So that what is tested on stubs is what deploys."""
    assert read(templates, "deployed.json") == read(templates, "plain.json")


def test_three_functions_share_one_asset(templates: Path) -> None:
    """Built once, uploaded once; the other file is the template itself."""
    files = read(templates, "assembly/SageAudit.assets.json")["files"].values()
    packaging = sorted(file["source"]["packaging"] for file in files)
    assert packaging == ["file", "zip"]
    assert len(list(templates.glob("assembly/asset.*"))) == 1


def test_the_stack_is_of_no_account_and_region(templates: Path) -> None:
    """Who deploys says where to."""
    artifacts = read(templates, "assembly/manifest.json")["artifacts"]
    assert artifacts["SageAudit"]["environment"] == "aws://unknown-account/unknown-region"


def test_a_wrong_policy_stops_the_synthesis_in_one_sentence(tmp_path: Path) -> None:
    """Not a Lambda at its first event."""
    policy = tmp_path / "policy.toml"
    policy.write_text("flor_usd = 5\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="flor_usd"):
        load_policy(policy)


def test_a_wrong_setting_stops_the_synthesis_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It names the key of cdk.json, without a traceback."""
    refusal = BadSetting("context architecture: must be arm64 or x86_64, not 'arm'")
    monkeypatch.setattr(assembly, "synthesize", Mock(side_effect=refusal))
    with pytest.raises(SystemExit, match="sageaudit: context architecture: must be"):
        assembly.assemble()


def test_nobody_is_subscribed_by_the_stack(templates: Path) -> None:
    """`make deploy` subscribes after the deployment, so that each later one keeps its answers."""
    assert not of_type(read(templates, "plain.json"), "AWS::SNS::Subscription")


@pytest.mark.parametrize("number", range(len(REFUSED)), ids=[f"{k}={v}" for k, v in REFUSED])
def test_a_context_that_is_no_answer_is_refused(number: int, templates: Path) -> None:
    """It names the key."""
    assert f"context {REFUSED[number][0]}: " in read(templates, "refused.json")[number]


def test_deliver_may_use_the_own_keys_of_topics(templates: Path) -> None:
    """SNS asks KMS in the publisher's name: for a data key, and to decrypt it."""
    template = read(templates, "own-keys.json")
    topics = of_type(template, "AWS::SNS::Topic")
    assert [topic.get("KmsMasterKeyId") for topic in topics.values()].count(OWN_KEY) == 1
    granted = [
        (name, statement["Action"])
        for name, policy in of_type(template, "AWS::IAM::Policy").items()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Resource"] == [OWN_KEY, OTHER_KEY]
    ]
    assert [(name[:7], actions) for name, actions in granted] == [
        ("Deliver", ["kms:GenerateDataKey*", "kms:Decrypt"])
    ]
    published = {on for action, on in statements(template, "Deliver") if action == "sns:Publish"}
    assert published == {"${NoticesTopic}", OTHER_TOPIC}
