import json
import re

import pytest

from sageaudit.domain.job.addresses import repository
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.family import family, fingerprint, stem
from sageaudit.domain.job.job import InstanceGroup, Parent
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.jobs import job, training_answer

TUNING = "arn:aws:sagemaker:us-east-1:111122223333:hyper-parameter-tuning-job/sweep"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["pytorch-training-2023-05-24-10-11-12-123"], "pytorch-training"),
        (["train-20230524-101112", "train-20240101-000000"], "train"),
        (["train-2023-05-24"], "train"),
        (["nightly-1662051719", "nightly-1662138119"], "nightly"),
        (["xgb-a1b2c3d4e5f6", "xgb-0f9e8d7c6b5a"], "xgb"),
        (["AbaloneTransform-1662051719-e84c"], "AbaloneTransform"),
        (["bayesian-221019-1100-001-cbaadb29", "bayesian-221019-1100-050-0a1b2c3d"], "bayesian"),
        (["pipelines-a1b2c3d4e5f6-Train-Zx9Kq3LmN2", "Train"], "Train"),
        (["churn-model"], "churn-model"),
        (["2023-05-24-10-11-12-123"], "2023-05-24-10-11-12-123"),
        (["face-detector"], "face-detector"),
    ],
)
def test_a_stem_is_the_name_without_times_and_hashes(names: list[str], expected: str) -> None:
    """Timestamps and hashes are removed, words stay. A name that is only a timestamp stays the
    same.
    """
    assert [stem(name) for name in names] == [expected] * len(names)


@pytest.mark.parametrize(
    ("image", "path"),
    [
        ("1.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.0", "pytorch-training"),
        ("1.dkr.ecr.us-east-1.amazonaws.com/team/model@sha256:abc", "team/model"),
        ("localhost:5000/model:1", "model"),
        ("python:3.11", "python"),
        (None, None),
    ],
)
def test_a_repository_has_no_registry_tag_or_digest(image: str | None, path: str | None) -> None:
    """An image with a new tag is in the same family."""
    assert repository(image) == path


def test_a_familys_name_says_what_runs() -> None:
    """Kind, image repository, entry point and stem."""
    run = job(name="bert-2026-05-20-10-00-00-000", entry_point="train.py")
    assert family(run) == "training/pytorch-training/train.py/bert"
    assert family(job(name="bert", image=None)) == "training/-/-/bert"


def test_a_family_does_not_depend_on_type_and_count() -> None:
    """The family stays the same if a recommendation is followed."""
    other_job = job(groups=(InstanceGroup("ml.m5.large", 7),), region="eu-west-1")
    assert family(other_job) == family(job())


def test_a_tuning_job_and_its_children_are_a_family() -> None:
    """The tuning job is in it, too. The roll-up counts before everything else."""
    child = job(parent=Parent(JobKind.TUNING.spec.rollup, TUNING), tags={"model": "bert"})
    assert family(child, "model") == TUNING
    assert family(job(kind=JobKind.TUNING, arn=TUNING)) == TUNING


def test_the_policys_tag_comes_before_pipeline_and_name() -> None:
    """If the job has the tag. An empty value does not count."""
    step = "pipeline/nightly/Train"
    assert family(job(tags={"model": "bert"}, pipeline_step=step), "model") == "bert"
    assert family(job(tags={"model": ""}, pipeline_step=step), "model") == step
    assert family(job(tags={"model": "bert"}), None) == family(job())


def test_a_fingerprint_is_keyed() -> None:
    """Without the key nobody can test guesses of hyperparameters."""
    parts = {"image": "a", "hyperparameters": {"lr": "0.1"}}
    assert re.fullmatch(r"[0-9a-f]{64}", fingerprint(b"one", parts))
    assert fingerprint(b"one", parts) == fingerprint(b"one", dict(reversed(parts.items())))
    assert fingerprint(b"one", parts) != fingerprint(b"two", parts)


def test_a_fingerprint_depends_on_what_was_run() -> None:
    """It depends on image, data and the user's hyperparameters, not on the SDK's own, the type or
    the name. The address of the code counts only if it has a hash of its content.
    """

    def fingerprint_of(**changes: object) -> str | None:
        return parse(training_answer(**changes), {}, key=b"k").fingerprint

    same = fingerprint_of(HyperParameters={"lr": "0.1", "sagemaker_job_name": "a"})
    assert same == fingerprint_of(HyperParameters={"lr": "0.1", "sagemaker_job_name": "b"})
    assert same == fingerprint_of(
        HyperParameters={"lr": "0.1"},
        TrainingJobName="another",
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 9},
    )
    assert same != fingerprint_of(HyperParameters={"lr": "0.2"})
    assert same != fingerprint_of(
        HyperParameters={"lr": "0.1"},
        InputDataConfig=[{"ChannelName": "a", "DataSource": {"S3DataSource": {"S3Uri": "s3://x"}}}],
    )
    assert same != fingerprint_of(HyperParameters={"lr": "0.1"}, Environment={"EPOCHS": "5"})

    def code(address: str) -> str | None:
        submitted = json.dumps(f"s3://bucket/{address}/sourcedir.tar.gz")
        return fingerprint_of(
            HyperParameters={"lr": "0.1", "sagemaker_submit_directory": submitted}
        )

    assert same == code("job-2026-05-01/source") == code("job-2026-05-02/source")
    assert same != code(f"pipe/code/{'0a' * 32}") != code(f"pipe/code/{'1b' * 32}")
    assert code(f"pipe/code/{'0a' * 32}") == code(f"pipe/code/{'0a' * 32}")
