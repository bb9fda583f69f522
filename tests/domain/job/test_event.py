import json
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import (
    AccountRegion,
    JobEndEvent,
    JobRef,
    is_same_run,
    parse_described_run,
    parse_job_end_event,
    region_partition,
)
from sageaudit.domain.members import AuditScope
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.errors import MalformedData, RejectedEvent
from sageaudit.structs import replace
from tests.fakes.jobs import training_answer

ACCOUNT = "111122223333"
REGION = "us-east-1"
NEAR = "us-east-2"
ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/train-bert"
EVENT: dict[str, Any] = {
    "version": "0",
    "id": "00000000-0000-4000-8000-000000000001",
    "source": "aws.sagemaker",
    "detail-type": "SageMaker Training Job State Change",
    "account": ACCOUNT,
    "region": REGION,
    "time": "2026-05-20T13:00:01Z",
    "resources": [ARN],
    "detail": {
        "TrainingJobName": "Train-Bert",
        "TrainingJobArn": ARN,
        "TrainingJobStatus": "Completed",
        "CreationTime": 1779270000000,
        "FailureReason": None,
        "Tags": {"team": "vision"},
    },
}


def event(path: str = "", value: object = None) -> str:
    """Returns the event's JSON with one value changed, or absent (...)."""
    changed = deepcopy(EVENT)
    if path:
        *folders, key = path.split("/")
        place = changed
        for folder in folders:
            place = place[folder]
        if value is ...:
            del place[key]
        else:
            place[key] = value
    return json.dumps(changed)


def read(body: str) -> JobEndEvent:
    """Returns the job of an event for one account in one region."""
    members = MemberAccounts({"222233334444": "reader"}, regions=(NEAR,))
    return parse_job_end_event(body, AuditScope(AccountRegion(ACCOUNT, REGION), members))


def test_an_event_names_its_job() -> None:
    """Name, ARN, status, tags and creation time come from the event; everything else from
    Describe.
    """
    ended = read(event())
    assert (ended.ref.kind, ended.ref.name, ended.ref.arn) == (JobKind.TRAINING, "Train-Bert", ARN)
    assert (ended.ref.account, ended.ref.region) == (ACCOUNT, REGION)
    assert (ended.status, ended.tags) == ("Completed", {"team": "vision"})
    assert ended.created_at == datetime(2026, 5, 20, 9, 40, tzinfo=UTC)
    assert ended.ended_at == datetime(2026, 5, 20, 13, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("source", "sageaudit.replay"),
        ("account", ...),
        ("resources", []),
        ("id", None),
        ("detail/CreationTime", "1779270000000"),
        ("detail/CreationTime", None),
        ("detail/CreationTime", "2026-05-20T09:40:00Z"),
        ("detail/TrainingJobStatus", "Failed"),
        ("detail/TrainingJobStatus", "Stopped"),
        ("detail/TrainingJobName", "TRAIN-BERT"),
        ("detail/Tags", None),
        ("detail/Tags", ...),
        ("detail/Tags", "x"),
        ("detail/Tags", [{"Key": "team", "Value": "vision"}]),
        ("detail/Tags", [1, {"Value": "no key"}, {"Key": "only"}]),
        ("detail/HyperParameters", {"x": "y" * 100_000}),
    ],
)
def test_real_events_are_accepted(path: str, value: object) -> None:
    """Replays, absent envelopes, other forms of time and tags, and names in other case."""
    assert read(event(path, value)).ref.arn == ARN


def test_tags_come_as_a_map_or_as_pairs() -> None:
    """A flat map in real events; Key and Value objects in the registry's schema."""
    pairs = [{"Key": "team", "Value": "vision"}, {"Key": "bare"}, 5]
    assert read(event("detail/Tags", pairs)).tags == {"team": "vision", "bare": ""}
    assert read(event("detail/Tags", {"n": 5})).tags == {"n": "5"}


def test_tags_of_an_event_that_a_person_sent_are_not_read() -> None:
    """Anyone who may send events could name an owner, or accept findings."""
    assert read(event("source", "sageaudit.replay")).tags == {}


OTHER = "arn:aws:sagemaker:us-east-1:999988887777:training-job/train-bert"


NO_NAMES = (..., None, 5, "a" * 64, "train bert", "train-bert\n", "<!channel>")
OTHER_ARNS = (
    "arn:aws:iam::111122223333:role/x",
    ARN.replace("training", "processing"),
    ARN + "/x",
)
NO_ACCOUNTS = ("evil", "999988887777", 111122223333, ["111122223333"], {"id": ACCOUNT})
NO_SOURCES = ("custom.sagemaker", ..., ["aws.sagemaker"], {"a": 1})
NO_TYPES = ("SageMaker Endpoint State Change", None, {"a": 1})
NO_DETAILS: tuple[Any, ...] = (None, [], "Completed")
FORGED: dict[str, list[tuple[str, Any]]] = {
    "wrong_source": [("source", x) for x in NO_SOURCES],
    "not_a_job": [("detail-type", x) for x in NO_TYPES],
    "no_detail": [("detail", x) for x in NO_DETAILS],
    "malformed": [
        ("detail", {}),
        *(("detail/TrainingJobName", x) for x in NO_NAMES),
        ("detail/TrainingJobArn", ...),
        ("detail/TrainingJobArn", {}),
        ("detail/TrainingJobStatus", ["Completed"]),
        *(("detail/CreationTime", x) for x in ("yesterday", {"$date": 1})),
        ("time", []),
    ],
    "arn_disagrees": [
        ("detail/TrainingJobName", "another-job"),
        *(("detail/TrainingJobArn", x) for x in OTHER_ARNS),
    ],
    "wrong_account": [("detail/TrainingJobArn", OTHER), *(("account", x) for x in NO_ACCOUNTS)],
    "wrong_region": [
        ("detail/TrainingJobArn", ARN.replace(REGION, "eu-west-1")),
        *(("region", x) for x in ("eu-west-1", "us-east-1\nx", None)),
    ],
    "region_disagrees": [("region", NEAR), ("detail/TrainingJobArn", ARN.replace(REGION, NEAR))],
    "account_disagrees": [
        ("account", "222233334444"),
        ("detail/TrainingJobArn", ARN.replace(ACCOUNT, "222233334444")),
    ],
    "not_terminal": [("detail/TrainingJobStatus", x) for x in ("InProgress", ...)],
}


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [(*change, code) for code, changes in FORGED.items() for change in changes],
    ids=str,
)
def test_a_forged_or_malformed_event_is_refused_with_its_reason(
    path: str, value: object, code: str
) -> None:
    """Its job is neither described nor priced. The code is stable, as a metric counts it."""
    with pytest.raises(RejectedEvent) as caught:
        read(event(path, value))
    assert caught.value.code == code
    assert str(caught.value)


DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000
NO_JSON = ("", "{", "\x00\xff", "9" * 5000, "junk " * 52_000, "[" * 200_000, DEEP)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        *((body, "not_json") for body in NO_JSON),
        *((body, "not_an_event") for body in ("null", "[]", '"event"', "5")),
        ("{}", "wrong_source"),
    ],
    ids=lambda value: value[:12],
)
def test_a_body_that_is_no_event_is_refused(body: str, code: str) -> None:
    """Including 256 KB of junk and endless nesting."""
    with pytest.raises(RejectedEvent) as caught:
        read(body)
    assert caught.value.code == code


def test_deep_nesting_inside_the_detail_does_not_crash() -> None:
    """Some JSON parsers accept it, some refuse it, and none crashes."""
    deep = event("detail/HyperParameters", "@").replace('"@"', "[" * 900 + "]" * 900)
    assert read(deep).ref.name == "Train-Bert"


def test_a_reason_never_repeats_the_event() -> None:
    """The text of a forger is not written to the log."""
    with pytest.raises(RejectedEvent) as caught:
        read(event("detail/TrainingJobName", "\x1b[31m<!channel>"))
    assert "channel" not in str(caught.value)


CREATED = datetime(2026, 5, 20, 9, 58, tzinfo=UTC)
ACCOUNTS = (ACCOUNT, "222233334444")
REGIONS = (REGION, "eu-west-1", "cn-north-1")
NAMES = ("train-vision", "train-vision-2")


def ref_of(kind: JobKind, name: str, account: str, region: str) -> JobRef:
    """Returns the identity of a job."""
    arn = f"arn:{region_partition(region)}:sagemaker:{region}:{account}:{kind.spec.arn_word}/{name}"
    return JobRef(kind, name, arn, account, region)


REF = ref_of(JobKind.TRAINING, NAMES[0], ACCOUNT, REGION)
REFS = st.builds(
    ref_of,
    st.sampled_from(JobKind),
    st.sampled_from(NAMES),
    st.sampled_from(ACCOUNTS),
    st.sampled_from(REGIONS),
)


def describe_answer(ref: JobRef, **changes: Any) -> dict[str, Any]:
    """Returns Describe's answer about a job."""
    spec = ref.kind.spec
    times = {"CreationTime": CREATED, "LastModifiedTime": CREATED + timedelta(hours=1)}
    return {
        spec.name_key: ref.name,
        spec.arn_key: ref.arn,
        spec.status_key: "Failed",
        **times,
        **changes,
    }


def test_an_answer_about_the_job_names_the_run() -> None:
    """The run has its ARN, and the times of its creation and last change. Case is ignored in
    names.
    """
    run = parse_described_run(REF, describe_answer(REF))
    assert (run.arn, run.created_at) == (REF.arn, CREATED)
    assert run.modified_at == CREATED + timedelta(hours=1)
    assert parse_described_run(replace(REF, name="Train-Vision"), training_answer()).arn == REF.arn
    with pytest.raises(MalformedData):
        parse_described_run(REF, describe_answer(REF, CreationTime="yesterday"))


@given(expected=REFS, answered=REFS)
def test_an_answer_about_another_job_is_refused(expected: JobRef, answered: JobRef) -> None:
    """It differs in kind, name, account or region."""
    if expected == answered:
        assert parse_described_run(expected, describe_answer(answered)).arn == expected.arn
        return
    with pytest.raises(RejectedEvent) as caught:
        parse_described_run(expected, describe_answer(answered))
    assert caught.value.code == "answer_disagrees"
    assert str(caught.value)


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::111122223333:role/x",
        "nonsense",
        "arn:aws-cn:sagemaker:us-east-1:111122223333:training-job/train-vision",
        "arn:aws:sagemaker:us-east-1:111122223333:training-job/train-vision-2",
    ],
)
def test_an_arn_of_something_else_is_refused(arn: str) -> None:
    """Even if the name is right."""
    with pytest.raises(RejectedEvent):
        parse_described_run(REF, describe_answer(REF, TrainingJobArn=arn))


@pytest.mark.parametrize(
    ("apart_s", "same"), [(0, True), (0.4, True), (-0.999, True), (1, False), (-3600, False)]
)
def test_creation_times_within_a_second_are_of_one_run(apart_s: float, *, same: bool) -> None:
    """Events have milliseconds, lists have seconds. An unknown time matches any run."""
    assert is_same_run(CREATED, CREATED + timedelta(seconds=apart_s)) is same
    assert is_same_run(None, CREATED)
    assert is_same_run(CREATED, None)
