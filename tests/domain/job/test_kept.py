"""What is stored of a Describe answer. That nothing else is: tests/properties/test_privacy.py."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.aws.service_model import api_model
from sageaudit.domain.job.addresses import is_data_pinned
from sageaudit.domain.job.describe import (
    SAGEAUDIT_TAGS,
    STATES,
    filter_tags,
    parse,
    sanitize_answer,
)
from sageaudit.domain.job.fields import Shape, StoredAs
from sageaudit.domain.job.job_fields import STORED_FIELDS
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import IGNORE_TAG as EXEMPTION
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.rule_choices import JobOverride, RuleSettings
from sageaudit.errors import MalformedData
from sageaudit.rules.purchase.spot_not_used import DEADLINE_TAG
from tests.fakes.jobs import training_answer

ECR = "111122223333.dkr.ecr.us-east-1.amazonaws.com"
SHAPES = api_model().shapes
TYPES = {
    StoredAs.COUNT: {"integer", "long"},
    StoredAs.NUMBER: {"float"},
    StoredAs.FLAG: {"boolean"},
    StoredAs.TIME: {"timestamp"},
    StoredAs.PRESENCE: {"string", "list", "structure"},
}
"""The types in AWS's service model of fields that are not a text."""


def leaves(
    shape: Shape, names: set[str], path: str = ""
) -> Iterator[tuple[str, StoredAs, set[str]]]:
    """Yields each field of the table with the shapes that AWS's model has for it."""
    for key, inner in shape.items():
        members = [SHAPES[name]["members"].get(key) for name in names]
        result = {member["shape"] for member in members if member}
        assert result, f"{path}{key} is in no answer of AWS"
        if isinstance(inner, StoredAs):
            yield f"{path}{key}", inner, result
        elif isinstance(inner, list):
            items = {SHAPES[name]["member"]["shape"] for name in result}
            yield from leaves(inner[0], items, f"{path}{key}[].")
        else:
            yield from leaves(inner, result, f"{path}{key}.")


def test_the_table_has_the_fields_and_the_states_of_aws() -> None:
    """If a newer SDK has a new state, this fails: add the state, so that it is not Unknown."""
    answers = {f"Describe{kind.spec.prefix}JobResponse" for kind in JobKind}
    for path, field, names in leaves(STORED_FIELDS, answers):
        for name in names:
            assert SHAPES[name]["type"] in TYPES.get(field, {"string"}), path
            if field is StoredAs.STATE:
                assert set(SHAPES[name]["enum"]) <= STATES, path


def test_the_page_of_permissions_lists_what_is_shown() -> None:
    """Each kind of name, in the words of the table."""
    page = (Path(__file__).parents[3] / "docs" / "permissions.md").read_text(encoding="utf-8")
    shown = {field.value for field in StoredAs if isinstance(field.value, str)}
    assert [text for text in sorted(shown) if f"| {text} |" not in page] == []


@pytest.mark.parametrize(
    ("image", "stored"),
    [
        (f"{ECR}/team/train:2.1-cu121", f"{ECR}/team/train:2.1-cu121"),
        (f"{ECR}/train@sha256:{'0f' * 32}", f"{ECR}/train"),
        (f"{ECR}/train:{'0f' * 20}", f"{ECR}/train:{'0f' * 20}"),
        ("registry.example.com:5000/train", "registry.example.com:5000/train"),
        ("user:pass@registry.example.com/train", "withheld"),
        (f"{ECR}/{'0f' * 20}", "withheld"),
        ("an image\n", "withheld"),
    ],
)
def test_name_and_tag_of_an_image_are_stored(image: str, stored: str) -> None:
    """A commit may be its tag. Its digest is not stored."""
    answer = sanitize_answer({"AlgorithmSpecification": {"TrainingImage": image}})
    assert answer["AlgorithmSpecification"]["TrainingImage"] == stored


@pytest.mark.parametrize(
    ("address", "stored"),
    [
        ("s3://raw-data/churn/2026-05-20/", "s3://raw-data/?versionId=kept"),
        ("s3://raw-data/churn/latest/x.csv?versionId=3HL4kqtJ", "s3://raw-data/?versionId=kept"),
        ("s3://raw-data/churn", "s3://raw-data/"),
        ("s3://user:pass@raw-data/2026-05-20/", "s3://-/?versionId=kept"),
        ("https://raw-data.s3.amazonaws.com/x?token=y", "s3://-/"),
        ("nonsense", "s3://-/"),
    ],
)
def test_the_bucket_of_an_address_is_stored_and_whether_its_data_may_change(
    address: str, stored: str
) -> None:
    """Keys may name people and contracts, and no audit needs them."""
    result = sanitize_answer({"CheckpointConfig": {"S3Uri": address}})["CheckpointConfig"]["S3Uri"]
    assert result == stored
    assert is_data_pinned([("train", result)]) == is_data_pinned([("train", address)])


def test_new_states_become_unknown_and_unread_fields_are_dropped() -> None:
    """New states and instance types become Unknown; a phase's message becomes one of two
    sentences.
    """
    answer = training_answer(
        TrainingJobStatus="Frobnicated",
        ResourceConfig={"InstanceType": "a type", "InstanceCount": 2, "VolumeKmsKeyId": "k"},
        RoleArn="arn:aws:iam::111122223333:role/x",
        TrainingJobName="no name",
        SecondaryStatusTransitions=[
            {"Status": "Downloading", "StatusMessage": "Downloading the training image for Ada"},
            {"Status": "Training", "StatusMessage": "Training for Ada"},
        ],
    )
    stored = sanitize_answer(answer)
    assert (stored["TrainingJobStatus"], stored["TrainingJobName"]) == ("Unknown", "withheld")
    assert stored["ResourceConfig"]["InstanceType"] == "Unknown"
    assert stored["ResourceConfig"]["VolumeKmsKeyId"] == "withheld"
    assert [row["StatusMessage"] for row in stored["SecondaryStatusTransitions"]] == [
        "Downloading the image",
        None,
    ]
    assert "RoleArn" not in stored


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python3", "/opt/ml/code/clean.py", "--token", "hunter2"], "clean.py"),
        (["torchrun", "--nproc", "8", "src/train.py", "setup.sh"], "train.py"),
        (["Rscript", "model.R"], "model.R"),
        (["bash", "run.sh"], "run.sh"),
        (["bash", "-c", "python x.py --password=hunter2"], None),
        (["./hunter2"], None),
        (["python3", "-m", "hunter2"], None),
        (["run.py --password=hunter2"], None),
        (["python", "s3://hunter2@bucket/x.py?token=hunter2"], None),
    ],
)
def test_only_a_word_with_a_scripts_suffix_is_an_entry_point(
    command: list[str], name: str | None
) -> None:
    """The family is named after it. Any other word of a command may be a secret."""
    answer = {
        "ProcessingJobName": "p",
        "ProcessingJobStatus": "Completed",
        "AppSpecification": {"ContainerEntrypoint": command},
    }
    stored = sanitize_answer(answer)
    assert stored["Derived"].get("EntryPoint") == name
    assert parse(answer, {}).entry_point == parse(stored, {}).entry_point == name
    assert "hunter2" not in json.dumps(stored)


@pytest.mark.parametrize("derived", [{"EntryPoint": "rm -rf / #"}, {"TunedFor": "x"}, 5, None])
def test_a_stored_answer_is_checked_again(derived: object) -> None:
    """Anybody can edit the file of a recording."""
    job = parse(training_answer(Derived=derived), {})
    assert (job.entry_point, job.objective) == (None, None)


def test_a_fingerprint_is_made_once_and_then_stored() -> None:
    """Under another key, or for an answer without its settings, no new one is made."""
    answer = training_answer(HyperParameters={"lr": "0.1"})
    once = sanitize_answer(answer, b"key")
    assert parse(answer, {}, key=b"key").fingerprint == once["Derived"]["Fingerprint"]
    assert parse(once, {}, key=b"other").fingerprint == once["Derived"]["Fingerprint"]
    assert parse(sanitize_answer(answer), {}, key=b"key").fingerprint is None
    assert parse(once, {}).fingerprint is None
    assert sanitize_answer({**answer, "HyperParameters": {"lr": "0.2"}}, b"key") != once


def test_tags_that_the_policy_names_are_stored() -> None:
    """And those that audits always read. Other tags may have any text."""
    section = JobOverride(None, ("stage", "dev"), None, RuleSettings())
    policy = Policy(owner_tags=("owner",), family_tag="workload", overrides=(section,))
    assert policy.tag_names.values == {"owner", "workload", "stage", *SAGEAUDIT_TAGS}
    assert {EXEMPTION, DEADLINE_TAG} <= SAGEAUDIT_TAGS
    tags = {"owner": "Jörg Müller", "stage": "", "workload": "a\nb", "password": "hunter2"}
    assert filter_tags(tags, policy.tag_names.values) == {"owner": "Jörg Müller", "stage": ""}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(STORED_FIELDS)), _JSON, max_size=6))
def test_a_stored_answer_is_stored_unchanged(answer: Mapping[str, Any]) -> None:
    """Or the whole answer is refused."""
    with suppress(MalformedData):
        stored = sanitize_answer(answer)
        assert sanitize_answer(stored) == stored
