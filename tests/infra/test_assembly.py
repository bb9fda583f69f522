"""`make synth`: the app as it deploys, with the real asset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import aws_lambda as lambda_

from infra import assembly
from infra.template import from_stub, normalized
from tests.infra.reading import of_type, text


@pytest.fixture(scope="module")
def cloud_assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What app.py writes; no Docker, and no AWS, since sockets are refused."""
    folder = tmp_path_factory.mktemp("assembly")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDK_OUTDIR", str(folder))
        assembly.assemble()
    return folder


def read(folder: Path, name: str) -> Any:
    """One JSON file of the assembly."""
    return json.loads((folder / name).read_text(encoding="utf-8"))


def test_the_app_writes_the_same_template_with_the_real_asset(cloud_assembly: Path) -> None:
    """So that what is tested on stubs is what deploys."""
    template = read(cloud_assembly, "SageAudit.template.json")
    assert normalized(template) == normalized(from_stub({}, channels="off"))


def test_three_functions_share_one_asset(cloud_assembly: Path) -> None:
    """Built once, uploaded once; the other file is the template itself."""
    files = read(cloud_assembly, "SageAudit.assets.json")["files"].values()
    packaging = sorted(file["source"]["packaging"] for file in files)
    assert packaging == ["file", "zip"]
    assert len(list(cloud_assembly.glob("asset.*"))) == 1


def test_the_stack_is_of_no_account_and_region(cloud_assembly: Path) -> None:
    """Who deploys says where to."""
    artifacts = read(cloud_assembly, "manifest.json")["artifacts"]
    assert artifacts["SageAudit"]["environment"] == "aws://unknown-account/unknown-region"


def test_a_wrong_policy_stops_the_synthesis_in_one_sentence(tmp_path: Path) -> None:
    """Not a Lambda at its first event."""
    policy = tmp_path / "policy.toml"
    policy.write_text("flor_usd = 5\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="flor_usd"):
        assembly.checked_policy(policy)


def synthesized(folder: Path, **switches: str) -> dict[str, Any]:
    """The template with a stub for the asset."""
    stub = folder / "stub"
    stub.mkdir()
    return assembly.synthesize(
        code=lambda_.Code.from_asset(str(stub)),
        roles={},
        outdir=str(folder / "out"),
        switches=switches,
    )


def test_the_context_subscribes_who_is_told(tmp_path: Path) -> None:
    """For teams whose pipeline runs the CDK CLI itself."""
    template = synthesized(
        tmp_path,
        alarms_to="ops@example.com, https://events.example.com/hook",
        notices_to="team@example.com",
    )
    told = {
        (text(one["TopicArn"]), one["Protocol"], one["Endpoint"])
        for one in of_type(template, "AWS::SNS::Subscription").values()
    }
    assert told == {
        ("${AlarmsTopic}", "email", "ops@example.com"),
        ("${AlarmsTopic}", "https", "https://events.example.com/hook"),
        ("${NoticesTopic}", "email", "team@example.com"),
    }


def test_nobody_is_subscribed_unless_the_context_says_so(tmp_path: Path) -> None:
    """`make deploy` subscribes after the deployment, so that each later one keeps its answers."""
    assert not of_type(synthesized(tmp_path), "AWS::SNS::Subscription")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("alarms_to", "ops", "context alarms_to: 'ops' is neither"),
        ("slack", "yes", "must be on or off"),
        # no permission can be granted on an alias
        ("topic_key", "alias/mine", "must be the ARN of a KMS key"),
        ("topic_key", "arn:aws:kms:us-east-1:1:alias/mine", "must be the ARN of a KMS key"),
    ],
)
def test_a_context_that_is_no_answer_is_refused(
    key: str, value: str, said: str, tmp_path: Path
) -> None:
    """It is named."""
    with pytest.raises(ValueError, match=said):
        synthesized(tmp_path, **{key: value})


def test_an_own_key_encrypts_the_topic_and_deliver_may_use_it(tmp_path: Path) -> None:
    """SNS asks KMS in the publisher's name: for a data key, and to decrypt it."""
    key = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    template = synthesized(tmp_path, topic_key=key)
    topics = of_type(template, "AWS::SNS::Topic")
    assert [topic.get("KmsMasterKeyId") for topic in topics.values()].count(key) == 1
    granted = [
        (name, statement["Action"])
        for name, policy in of_type(template, "AWS::IAM::Policy").items()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Resource"] == key
    ]
    assert [(name[:7], actions) for name, actions in granted] == [
        ("Deliver", ["kms:GenerateDataKey*", "kms:Decrypt"])
    ]
