"""A guard checks each call that starts a job, may refuse it, and never breaks it by a fault."""

import asyncio
import json
import pickle
import re
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sageaudit
from sageaudit.domain.job.kinds import JobKind
from sageaudit.workflows import check_files
from tests.fakes.guarded import Aws, train
from tests.fakes.planned import ROLE, body

DAY = {"StoppingCondition.MaxRuntimeInSeconds": 86400}
"""A change of the training request, which then costs at most $5.66, and not $0.24 in an hour."""


@pytest.fixture
def aws() -> Aws:
    return Aws()


@pytest.fixture
def client(aws: Aws) -> Any:
    return aws.client()


@pytest.fixture
def written() -> list[str]:
    return []


def start(client: Any, kind: JobKind, changes: dict[str, Any] | None = None) -> None:
    """Creates a job of a kind."""
    getattr(client, f"create_{kind.spec.sdk_noun}")(**body(kind, changes))


def test_a_call_is_printed_and_sent(
    aws: Aws, client: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text goes to stderr, in lines of at most 80 characters except what is to be copied."""
    with sageaudit.guard(client):
        train(client, {"ResourceConfig.InstanceType": "ml.p3.2xlarge"})
    text = capsys.readouterr().err
    assert aws.sent == ["CreateTrainingJob"]
    lines = text.splitlines()
    assert lines[0] == "sageaudit: training job train-1"
    assert lines[1].startswith("  At most $3.83: $3.825 an hour up to the limit of 1 h.")
    assert lines[2].startswith("  old-generation (up to $")
    assert lines[-1].startswith("    ResourceConfig.InstanceType = ")
    assert lines[-1].endswith("# now: ml.p3.2xlarge")
    assert all(len(line) <= 80 for line in lines if "# now" not in line)


class SdkSession:
    def __init__(self, session: Any, client: Any) -> None:
        self.boto_session = session
        self.sagemaker_client = client


TARGETS: dict[str, Callable[[Any, Any], Any]] = {
    "the client": lambda session, client: client,
    "its session": lambda session, client: session,
    "its botocore session": lambda session, client: session._session,
    "a session of an SDK": SdkSession,
    "the process": lambda session, client: None,
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_client_that_exists_already_is_guarded(name: str, aws: Aws) -> None:
    """The client of another session is guarded only with the process."""
    session = aws.session()
    client, other = session.client("sagemaker"), aws.client()
    with sageaudit.guard(TARGETS[name](session, client), max_usd=1, write=str):
        with pytest.raises(sageaudit.JobRefused):
            train(client, DAY)
        if name == "the process":
            with pytest.raises(sageaudit.JobRefused):
                train(other, DAY)
        else:
            train(other, DAY)
    assert len(aws.sent) == (name != "the process")
    train(client, DAY)


@pytest.mark.parametrize("name", ["its session", "a session of an SDK", "the process"])
def test_a_later_client_is_guarded_and_released(name: str, aws: Aws) -> None:
    """A client that copied the handler from its session is free when the guard is removed."""
    session = aws.session()
    guard = sageaudit.guard(
        TARGETS[name](session, session.client("sagemaker")), max_usd=1, write=str
    )
    later = session.client("sagemaker")
    with pytest.raises(sageaudit.JobRefused):
        train(later, DAY)
    guard.remove()
    train(later, DAY)
    assert aws.sent == ["CreateTrainingJob"]


def test_a_later_session_is_guarded_with_the_process(aws: Aws) -> None:
    """As the SDKs do, it is made after the guard. Later sessions are free again."""
    with sageaudit.guard(max_usd=1, write=str):
        client = aws.client()
        with pytest.raises(sageaudit.JobRefused):
            train(client, DAY)
    train(client, DAY)
    train(aws.client(), DAY)
    assert len(aws.sent) == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"target": 3}, "int is not a boto3 session, a client of sagemaker"),
        ({"max_usd": -1}, "max_usd=-1 is not an amount"),
        ({"max_usd": "fifty"}, "max_usd='fifty' is not an amount"),
        ({"max_usd": float("nan")}, "max_usd=nan is not an amount"),
        ({"max_usd": True}, "max_usd=True is not an amount"),
        ({"require": ["Tags.team"]}, "is not a table of settings"),
        ({"require": {"EnableManagedSpot": True}}, "did you mean EnableManagedSpotTraining"),
        ({"require": {"VpcConfig": 3}}, 'is not "set" or "not set"'),
        ({"policy": "no-such.toml"}, "no-such.toml"),
        ({"account": "12"}, "12 is not an account id"),
        ({"history": "audits.db"}, "AuditHistory.open"),
        ({"write": "stderr"}, "write='stderr' is not a function"),
    ],
)
def test_an_argument_that_makes_no_sense_is_one_sentence(
    arguments: dict[str, Any], reason: str, aws: Aws
) -> None:
    """Nothing is guarded then."""
    with pytest.raises(sageaudit.SageauditError, match=re.escape(reason)):
        sageaudit.guard(**{"target": aws.client(), **arguments})


def test_a_client_of_another_service_is_refused(aws: Aws) -> None:
    with pytest.raises(sageaudit.SageauditError, match="the client is of sqs"):
        sageaudit.guard(aws.session().client("sqs"))


def test_the_limit_that_a_refusal_names_is_within_the_guard(client: Any, aws: Aws) -> None:
    """The next minute is not."""
    with sageaudit.guard(client, max_usd="0.10", write=str):
        with pytest.raises(sageaudit.JobRefused) as caught:
            train(client, DAY)
        found = re.search(r"MaxRuntimeInSeconds = (\d+)", str(caught.value))
        assert found
        seconds = int(found[1])
        with pytest.raises(sageaudit.JobRefused):
            train(client, {"StoppingCondition.MaxRuntimeInSeconds": seconds + 60})
        train(client, {"StoppingCondition.MaxRuntimeInSeconds": seconds})
    assert aws.sent == ["CreateTrainingJob"]


def test_a_refusal_has_the_check_and_can_be_pickled(client: Any) -> None:
    """The text says what was not created, its cost, the limit and what to change."""
    with (
        sageaudit.guard(client, max_usd=5, write=str),
        pytest.raises(sageaudit.JobRefused) as caught,
    ):
        train(client, DAY)
    copied = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert str(copied) == str(caught.value)
    assert str(copied).startswith(
        "the training job train-1 was not created: its cost is at most $5.66, above the limit of"
        " $5.00 (max_usd): "
    )
    assert copied.checked["jobs"][0]["cost"]["at_most_usd"] > 5


def test_a_cost_at_the_limit_passes(client: Any, aws: Aws) -> None:
    cost = sageaudit.check(body(), region="us-east-1")["jobs"][0]["cost"]["at_most_usd"]
    with sageaudit.guard(client, max_usd=cost, write=str):
        train(client)
    with (
        sageaudit.guard(client, max_usd=cost - Decimal("0.000001"), write=str),
        pytest.raises(sageaudit.JobRefused),
    ):
        train(client)
    assert len(aws.sent) == 1


@pytest.mark.parametrize(
    ("kind", "cost"),
    [
        (JobKind.PROCESSING, "its cost is at most $0.23, above"),
        (JobKind.TUNING, "its cost is at most $1.89, above"),
    ],
)
def test_other_kinds_have_limits_too(kind: JobKind, cost: str, client: Any, aws: Aws) -> None:
    with (
        sageaudit.guard(client, max_usd="0.1", write=str),
        pytest.raises(sageaudit.JobRefused, match=re.escape(cost)),
    ):
        start(client, kind)
    assert aws.sent == []


UNKNOWN: dict[str, tuple[str, dict[str, Any], str]] = {
    "a transform job": (
        "create_transform_job",
        body(JobKind.TRANSFORM),
        "a transform job has no limit on its run time",
    ),
    "an AutoML job": (
        "create_auto_ml_job_v2",
        {
            "AutoMLJobName": "auto-1",
            "AutoMLJobInputDataConfig": [{"ChannelType": "training"}],
            "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
            "AutoMLProblemTypeConfig": {"TabularJobConfig": {"TargetAttributeName": "y"}},
            "RoleArn": ROLE,
        },
        "its request names no instances",
    ),
    "the start of a pipeline": (
        "start_pipeline_execution",
        {"PipelineName": "weekly", "ClientRequestToken": "1" * 32},
        "the call has no definition",
    ),
    "a definition in S3": (
        "update_pipeline",
        {
            "PipelineName": "weekly",
            "PipelineDefinitionS3Location": {"Bucket": "bucket", "ObjectKey": "weekly.json"},
        },
        "its definition is in S3",
    ),
    "a definition that is not JSON": (
        "update_pipeline",
        {"PipelineName": "weekly", "PipelineDefinition": "{"},
        "its definition is not JSON",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_cost_is_said_and_passes(
    name: str, client: Any, aws: Aws, written: list[str]
) -> None:
    """`refuse_unknown` refuses it."""
    method, request, reason = UNKNOWN[name]
    with sageaudit.guard(client, max_usd=1, write=written.append):
        getattr(client, method)(**request)
    text = " ".join("".join(written).split())
    assert "Its maximum cost is not known: " in text
    assert reason in text
    assert "The limit of $1.00 cannot be applied." in text
    assert len(aws.sent) == 1
    with (
        sageaudit.guard(client, refuse_unknown=True, write=str),
        pytest.raises(sageaudit.JobRefused, match=f"refuse_unknown is on: .*{reason}"),
    ):
        getattr(client, method)(**request)
    assert len(aws.sent) == 1


def test_a_type_without_a_price_has_an_unknown_cost(aws: Aws, written: list[str]) -> None:
    """The region of the client decides the price."""
    client = aws.client("us-iso-east-1")
    with sageaudit.guard(client, max_usd=1, write=written.append):
        train(client, DAY)
    assert "Its maximum cost is not known" in written[0]
    assert aws.sent == ["CreateTrainingJob"]


def pipeline(**changes: Any) -> dict[str, Any]:
    """Returns a request to create a pipeline of two training jobs and a transform job."""
    jobs = {"Training": body(changes=DAY), "Transform": body(JobKind.TRANSFORM)}
    steps = [("first", "Training"), ("second", "Training"), ("score", "Transform")]
    definition = {
        "Version": "2020-12-01",
        "Steps": [
            {"Name": name, "Type": kind, "Arguments": jobs[kind] | {f"{kind}JobName": None}}
            for name, kind in steps
        ],
    }
    return {"PipelineName": "weekly", "PipelineDefinition": json.dumps(definition), **changes}


def test_the_jobs_of_a_pipeline_count_together(client: Any, aws: Aws, written: list[str]) -> None:
    token = {"ClientRequestToken": "1" * 32, "RoleArn": ROLE}
    with sageaudit.guard(client, max_usd=10, write=written.append):
        with pytest.raises(sageaudit.JobRefused, match="for 2 of its 3 jobs, above"):
            client.create_pipeline(**pipeline(**token))
        assert aws.sent == []
    text = " ".join(written[0].split())
    assert "At most $11.31 for 2 of its 3 jobs, each to its limit." in text
    assert "The maximum cost of 1 job is not known: a transform job has no limit" in text
    assert "The limit of $10.00 is applied to the known costs only." in text


def test_an_update_after_a_create_is_printed_once(client: Any, written: list[str]) -> None:
    """The SDKs create a pipeline, and update it if it exists already."""
    token = {"ClientRequestToken": "1" * 32, "RoleArn": ROLE}
    with sageaudit.guard(client, write=written.append):
        client.create_pipeline(**pipeline(**token))
        client.update_pipeline(**pipeline())
        assert len(written) == 1
        client.update_pipeline(**pipeline())
        client.update_pipeline(PipelineName="weekly", PipelineDisplayName="Weekly")
        assert len(written) == 2


def test_other_calls_are_not_checked(client: Any, aws: Aws, written: list[str]) -> None:
    with sageaudit.guard(client, max_usd=0, refuse_unknown=True, write=written.append):
        client.list_training_jobs()
        client.describe_training_job(TrainingJobName="train-1")
    assert (len(aws.sent), written) == (2, [])


def test_a_job_must_meet_what_is_required(client: Any, aws: Aws) -> None:
    """Each setting and tag is named with its value. A job that meets all passes."""
    require = {"EnableNetworkIsolation": True, "Tags": {"team": "set"}}
    with sageaudit.guard(client, require=require, write=str):
        with pytest.raises(sageaudit.JobRefused) as caught:
            train(client)
        assert str(caught.value).endswith(
            "EnableNetworkIsolation is not set (required: true); the tag team is not set"
            " (required: set)"
        )
        tags = [{"Key": "team", "Value": "growth"}]
        train(client, {"EnableNetworkIsolation": True, "Tags": tags})
    assert len(aws.sent) == 1


def test_the_policy_is_required_only_with_require(client: Any, aws: Aws, tmp_path: Any) -> None:
    """Its rule may be off: the argument asks for it. An exemption still counts."""
    policy = tmp_path / "policy.toml"
    table = '[rules]\noff = ["requirement-not-met"]\n[require]\nEnableNetworkIsolation = true\n'
    policy.write_text(table, encoding="utf-8")
    with sageaudit.guard(client, policy=policy, write=str):
        train(client)
    with (
        sageaudit.guard(client, policy=policy, require={}, write=str),
        pytest.raises(sageaudit.JobRefused, match="EnableNetworkIsolation is not set"),
    ):
        train(client)
    exempt = '[[exempt]]\nrule = "requirement-not-met"\nby = "ana"\nreason = "a trial"\n'
    policy.write_text(f"{table}{exempt}", encoding="utf-8")
    with sageaudit.guard(client, policy=policy, require={}, write=str):
        train(client)
    assert len(aws.sent) == 2


def test_what_aws_refuses_is_printed(client: Any, written: list[str]) -> None:
    """botocore refuses it itself."""
    with (
        sageaudit.guard(client, write=written.append),
        pytest.raises(Exception, match="InstanceTyp"),
    ):
        train(client, {"ResourceConfig.InstanceTyp": "ml.m5.large"})
    assert "AWS refuses it: ResourceConfig.InstanceTyp" in written[0]


def test_a_guard_of_the_same_target_is_replaced(client: Any, aws: Aws) -> None:
    """A cell of a notebook may run again with another limit. Nothing is printed twice."""
    written: list[str] = []
    first = sageaudit.guard(client, max_usd=1, write=written.append)
    second = sageaudit.guard(client, max_usd=9, write=written.append)
    train(client, DAY)
    assert len(written) == 1
    second.remove()
    train(client, DAY)
    assert len(written) == 1
    first.remove()
    assert len(aws.sent) == 2


def test_after_a_block_the_guard_before_it_works_again(client: Any) -> None:
    with sageaudit.guard(client, max_usd=1, write=str) as outer:
        with sageaudit.guard(client, max_usd=9, write=str):
            train(client, DAY)
        with pytest.raises(sageaudit.JobRefused):
            train(client, DAY)
        with sageaudit.guard(client, max_usd=9, write=str):
            outer.remove()
        train(client, DAY)


def test_guards_of_two_targets_both_count_and_print_once(aws: Aws) -> None:
    """A limit of the process holds beside that of a client."""
    session, written = aws.session(), list[str]()
    client = session.client("sagemaker")
    with (
        sageaudit.guard(max_usd=1, write=written.append),
        sageaudit.guard(session, write=written.append),
        sageaudit.guard(client, max_usd=9, write=written.append),
        pytest.raises(sageaudit.JobRefused, match=re.escape("the limit of $1.00")),
    ):
        train(client, DAY)
    assert "".join(written).count("At most") == 1


def test_a_fault_of_ours_lets_the_call_pass(
    client: Any, aws: Aws, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says so."""

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(check_files, "check_mapping", broken)
    with sageaudit.guard(client, max_usd=0, write=written.append):
        train(client)
    assert written == [
        "sageaudit could not check CreateTrainingJob, which is sent: ZeroDivisionError: a defect"
    ]
    assert aws.sent == ["CreateTrainingJob"]


@pytest.mark.parametrize("max_usd", [None, 1])
def test_a_closed_output_breaks_nothing(client: Any, aws: Aws, max_usd: int | None) -> None:
    """A call above the limit is refused all the same."""

    def closed(_: str) -> None:
        raise ValueError("I/O operation on closed file")

    with sageaudit.guard(client, max_usd=max_usd, write=closed):
        if max_usd is None:
            train(client, DAY)
        else:
            with pytest.raises(sageaudit.JobRefused):
                train(client, DAY)
    assert len(aws.sent) == (max_usd is None)


def test_an_interruption_ends_the_call(
    client: Any, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with sageaudit.guard(client, write=str):
        monkeypatch.setattr(check_files, "check_mapping", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(client)
    assert aws.sent == []


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(kind=st.sampled_from(list(JobKind)[:4]), data=st.data())
def test_whatever_the_parameters_are_they_stay_as_they_are(kind: JobKind, data: Any) -> None:
    """Nothing but a refusal is raised, whatever a parameter is."""
    request = body(kind)
    for key in data.draw(st.lists(st.sampled_from(sorted(request)), max_size=2)):
        request[key] = data.draw(_VALUES)
    text = repr(request)
    calls: list[str] = []
    written: list[str] = []
    client = _ANY.client()
    with sageaudit.guard(client, max_usd=9, write=written.append) as guard:
        action = f"Create{kind.spec.prefix}Job"
        model = client.meta.service_model.operation_model(action)
        for _ in range(2):
            try:
                guard._before_call(request, model, {"client_region": "us-east-1"})
                calls.append(action)
            except sageaudit.JobRefused:
                calls.append("refused")
    assert repr(request) == text
    assert calls[0] == calls[1]
    assert "could not check" not in "".join(written)


_ANY = Aws()


def test_many_threads_share_a_guard(client: Any, aws: Aws) -> None:
    """Each call has its own text, in one piece."""
    written: list[str] = []
    names = [f"train-{number}" for number in range(24)]
    with sageaudit.guard(client, write=written.append), ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: train(client, {"TrainingJobName": name}), names))
    assert sorted(text.splitlines()[0].split()[-1] for text in written) == sorted(names)
    assert len(aws.sent) == 24


def test_a_call_from_a_coroutine_is_guarded(client: Any) -> None:
    async def start_all() -> list[BaseException | None]:
        calls = [asyncio.to_thread(train, client, DAY) for _ in range(3)]
        return await asyncio.gather(*calls, return_exceptions=True)

    with sageaudit.guard(client, max_usd=1, write=str):
        results = asyncio.run(start_all())
    assert [type(result) for result in results] == [sageaudit.JobRefused] * 3


def test_a_call_reads_no_file_and_loads_no_module(client: Any) -> None:
    """The guard loads rules and prices when it is made, so that a call takes milliseconds."""
    events: list[str] = []
    is_on = threading.local()
    is_on.value = False

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event in {"open", "import"} and getattr(is_on, "value", False):
            events.append(f"{event} {arguments[0]}")

    with sageaudit.guard(client, write=str):
        sys.addaudithook(note)
        is_on.value = True
        try:
            train(client, DAY)
        finally:
            is_on.value = False
    assert events == []
