"""`make synth`: the app as it deploys, with the real asset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra import assembly
from infra.template import from_stub, normalized


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


def test_slack_is_on_or_off(tmp_path: Path) -> None:
    """A context such as `slack=yes` is no answer."""
    with pytest.raises(ValueError, match="must be on or off"):
        assembly.synthesize(
            code=tmp_path, roles={}, outdir=str(tmp_path / "out"), switches={"slack": "yes"}
        )


@pytest.mark.parametrize("key", ["alias/mine", "1234abcd", "arn:aws:kms:us-east-1:1:alias/mine"])
def test_an_own_key_is_named_by_its_arn(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No permission can be granted on an alias."""
    monkeypatch.setattr(assembly, "cdk_context", lambda: {"topic-key": key})
    with pytest.raises(ValueError, match="must be the ARN of a KMS key"):
        assembly.synthesize(code=tmp_path, roles={}, outdir=str(tmp_path / "out"))


def test_an_own_key_encrypts_the_topic_and_deliver_may_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SNS asks KMS in the publisher's name: for a data key, and to decrypt it."""
    key = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    monkeypatch.setattr(assembly, "cdk_context", lambda: {"topic-key": key})
    code = tmp_path / "code"
    code.mkdir()
    (code / "stub.py").touch()
    template = assembly.synthesize(code=code, roles={}, outdir=str(tmp_path / "out"))
    topics = [
        resource["Properties"]
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::SNS::Topic" and name.startswith("Notices")
    ]
    assert [topic["KmsMasterKeyId"] for topic in topics] == [key]
    granted = [
        statement["Action"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::IAM::Policy"
        for statement in resource["Properties"]["PolicyDocument"]["Statement"]
        if statement["Resource"] == key
    ]
    assert granted == [["kms:GenerateDataKey*", "kms:Decrypt"]]
