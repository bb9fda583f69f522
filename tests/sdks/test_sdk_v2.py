"""The guard in version 2 of the SageMaker SDK."""

from collections.abc import Callable

import boto3
import pytest
import sagemaker
from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput
from sagemaker.local import LocalSession
from sagemaker.processing import Processor
from sagemaker.transformer import Transformer
from sagemaker.tuner import HyperparameterTuner, IntegerParameter
from sagemaker.workflow.pipeline import Pipeline
from sagemaker.workflow.pipeline_context import PipelineSession
from sagemaker.workflow.steps import TrainingStep

import sageaudit
from tests.sdks.local_aws import IMAGE, ROLE

pytestmark = pytest.mark.usefixtures("server")
DATA = {"train": "s3://bucket/data"}


@pytest.fixture
def session() -> sagemaker.Session:
    return sagemaker.Session(boto_session=boto3.Session(), default_bucket="bucket")


def estimator(session: sagemaker.Session, **options: object) -> Estimator:
    """Returns an estimator that costs at most $99.29 in a day."""
    return Estimator(
        image_uri=IMAGE,
        role=ROLE,
        instance_count=1,
        instance_type="ml.p3.2xlarge",
        output_path="s3://bucket/out",
        base_job_name="resnet",
        sagemaker_session=session,
        **options,
    )


def fit(session: sagemaker.Session) -> None:
    estimator(session).fit(DATA, wait=False)


def process(session: sagemaker.Session) -> None:
    Processor(ROLE, IMAGE, 1, "ml.m5.24xlarge", sagemaker_session=session).run(
        wait=False, logs=False
    )


def tune(session: sagemaker.Session) -> None:
    ranges = {"depth": IntegerParameter(1, 9)}
    metrics = [{"Name": "loss", "Regex": "loss=(.*)"}]
    HyperparameterTuner(estimator(session), "loss", ranges, metrics, max_jobs=9).fit(
        DATA, wait=False
    )


def transform(session: sagemaker.Session) -> None:
    Transformer("model", 1, "ml.m5.large", sagemaker_session=session).transform(
        "s3://bucket/data", wait=False
    )


TARGETS: dict[str, Callable[[sagemaker.Session], object]] = {
    "the SDK's session": lambda session: session,
    "its boto3 session, whose client exists already": lambda session: session.boto_session,
    "its client": lambda session: session.sagemaker_client,
    "the process": lambda session: None,
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_refused_fit_sends_nothing(
    name: str, session: sagemaker.Session, calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        sageaudit.guard(TARGETS[name](session), max_usd=50),
        pytest.raises(sageaudit.JobRefused, match="MaxRuntimeInSeconds = 43500"),
    ):
        fit(session)
    assert calls == []
    assert capsys.readouterr().err.count("At most $99.29: $4.131 an hour") == 1
    fit(session)
    assert "CreateTrainingJob" in calls


@pytest.mark.parametrize(
    ("start", "action"),
    [
        (fit, "CreateTrainingJob"),
        (process, "CreateProcessingJob"),
        (tune, "CreateHyperParameterTuningJob"),
        (transform, "CreateTransformJob"),
    ],
)
def test_each_kind_of_job_is_guarded(
    start: Callable[[sagemaker.Session], None],
    action: str,
    session: sagemaker.Session,
    calls: list[str],
) -> None:
    """A transform job has no limit, so that only `refuse_unknown` refuses it."""
    with sageaudit.guard(session, max_usd=10, refuse_unknown=True):
        with pytest.raises(sageaudit.JobRefused):
            start(session)
        assert action not in calls
    with sageaudit.guard(session, max_usd=1000):
        start(session)
    assert action in calls


def test_a_pipeline_is_checked_when_it_is_created(
    calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    session = PipelineSession(boto_session=boto3.Session(), default_bucket="bucket")
    arguments = estimator(session).fit({"train": TrainingInput("s3://bucket/data")})
    pipeline = Pipeline(
        "weekly", steps=[TrainingStep("train", step_args=arguments)], sagemaker_session=session
    )
    with sageaudit.guard(session, max_usd=50):
        with pytest.raises(sageaudit.JobRefused, match="the pipeline weekly was not created"):
            pipeline.upsert(role_arn=ROLE)
        assert calls == []
    with sageaudit.guard(session, max_usd=100):
        pipeline.upsert(role_arn=ROLE)
        pipeline.start()
    assert calls[-1] == "StartPipelineExecution"
    assert "the call has no definition" in " ".join(capsys.readouterr().err.split())


def test_a_session_of_local_mode_is_taken(calls: list[str]) -> None:
    """It starts its jobs on this machine, without a call that could be guarded."""
    local = LocalSession(boto_session=boto3.Session())
    with sageaudit.guard(local, max_usd=1), pytest.raises(sageaudit.JobRefused):
        fit(sagemaker.Session(boto_session=local.boto_session, default_bucket="bucket"))
    assert calls == []
