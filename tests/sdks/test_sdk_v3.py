"""The guard in version 3 of the SageMaker SDK, whose clients are cached for the whole process."""

from collections.abc import Callable, Iterator

import boto3
import pytest
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.resources import TrainingJob
from sagemaker.core.utils.utils import SageMakerClient
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import Compute, InputData, OutputDataConfig

import sageaudit
from tests.sdks.local_aws import IMAGE, ROLE

pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture
def session() -> Iterator[Session]:
    SageMakerClient.reset()
    yield Session(boto_session=boto3.Session(), default_bucket="bucket")
    SageMakerClient.reset()


def train(session: Session) -> None:
    """Starts a job that costs at most $4.14 in an hour, which is the SDK's own limit."""
    trainer = ModelTrainer(
        training_image=IMAGE,
        role=ROLE,
        compute=Compute(instance_count=1, instance_type="ml.p3.2xlarge"),
        output_data_config=OutputDataConfig(s3_output_path="s3://bucket/out"),
        base_job_name="resnet",
        sagemaker_session=session,
    )
    data = InputData(channel_name="train", data_source="s3://bucket/data")
    trainer.train(input_data_config=[data], wait=False)


def create() -> None:
    """Creates a job with the SDK's default client."""
    TrainingJob.create(
        training_job_name="resnet-1",
        role_arn=ROLE,
        algorithm_specification={"training_image": IMAGE, "training_input_mode": "File"},
        output_data_config={"s3_output_path": "s3://bucket/out"},
        resource_config={
            "instance_type": "ml.p3.2xlarge",
            "instance_count": 1,
            "volume_size_in_gb": 30,
        },
        stopping_condition={"max_runtime_in_seconds": 86400},
    )


TARGETS: dict[str, Callable[[Session], object]] = {
    "the SDK's session": lambda session: session,
    "its boto3 session": lambda session: session.boto_session,
    "the process": lambda session: None,
}


@pytest.mark.parametrize("is_cached", [False, True], ids=["a new client", "the cached client"])
@pytest.mark.parametrize("name", TARGETS)
def test_a_refused_train_sends_nothing(
    name: str,
    is_cached: bool,
    session: Session,
    calls: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    if is_cached:
        train(session)
        assert "CreateTrainingJob" in calls
        calls.clear()
    with (
        sageaudit.guard(TARGETS[name](session), max_usd=2),
        pytest.raises(sageaudit.JobRefused, match="MaxRuntimeInSeconds = 1740"),
    ):
        train(session)
    assert calls == []
    assert capsys.readouterr().err.count("$4.131 an hour") == 1
    train(session)
    assert "CreateTrainingJob" in calls


@pytest.mark.parametrize("is_cached", [False, True], ids=["a new client", "the cached client"])
def test_the_default_client_is_guarded_with_the_process(
    is_cached: bool, session: Session, calls: list[str]
) -> None:
    """It has a session of its own, which the user never sees."""
    if is_cached:
        SageMakerClient()
    with sageaudit.guard(max_usd=2), pytest.raises(sageaudit.JobRefused):
        create()
    assert calls == []
    create()
    assert "CreateTrainingJob" in calls


def test_the_cached_client_may_be_the_target(session: Session, calls: list[str]) -> None:
    client = SageMakerClient()
    with sageaudit.guard(client, max_usd=2), pytest.raises(sageaudit.JobRefused):
        create()
    assert calls == []
