"""`sageaudit doctor`: every check has a state, a sentence and a next step."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.parsers import ResponseParserError
from moto import mock_aws

from sageaudit.adapters.aws import sagemaker
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.workflows.doctor import permissions
from tests.adapters.history.tables import new_table
from tests.adapters.history.test_odd_items import fill
from tests.fakes.aws_calls import AwsCalls, aws_calls
from tests.fakes.command_line import Result, Run

OWN, OTHER, ABSENT = "123456789012", "222233334444", "444455556666"
REGION = "us-east-1"
WHOSE = {"Account": OWN, "Arn": f"arn:aws:iam::{OWN}:user/ana", "UserId": "A"}


def job_not_found(operation: str) -> Any:
    """Returns SageMaker's response about a job that does not exist."""

    def answer(_: str, __: Any) -> Any:
        error = {"Code": "ValidationException", "Message": "Requested resource not found."}
        raise ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}, operation)

    return answer


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[AwsCalls]:
    """Yields an account that permits everything."""
    monkeypatch.delenv("MOTO_ACCOUNT_ID")  # moto: the account of the credentials
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with mock_aws(), aws_calls() as aws_calls_made:
        for action in permissions.actions_of_commands(permissions.READ_ONLY_COMMANDS, ()):
            service, _, operation = action.partition(":")
            if service == "sagemaker" and not operation.startswith("List"):
                aws_calls_made.answer(action, job_not_found(operation))
        aws_calls_made.answer("sagemaker:ListTags", lambda *_: {"Tags": []})
        for action in sagemaker.CHILDREN_PERMISSIONS:
            aws_calls_made.answer(action, job_not_found(action.partition(":")[2]))
        aws_calls_made.answer("pricing:GetProducts", lambda *_: {"PriceList": []})
        aws_calls_made.answer("sts:GetCallerIdentity", lambda *_: WHOSE)
        yield aws_calls_made


def checks(done: Result) -> dict[str, dict[str, Any]]:
    """Returns the checks by name."""
    printed = json.loads(done.stdout)
    assert printed["schema"] == 1
    return {check["name"]: check for check in printed["checks"]}


def test_success_is_0_and_every_permission_has_a_line(calls: AwsCalls, run: Run) -> None:
    """No call costs more than a metric."""
    done = run("doctor", "--coverage", "--output", "json")
    result = checks(done)
    assert done.exit_code == 0, done.stdout
    assert set(permissions.actions_of_commands(permissions.READ_ONLY_COMMANDS, ())) <= result.keys()
    assert {"versions", "prices", "region", "credentials"} <= result.keys()
    costs = result.pop("ce:GetCostAndUsage")
    assert (costs["state"], costs["found"]) == ("not_checked", "a check costs $0.01")
    assert {check["state"] for check in result.values()} == {"ok"}
    assert not calls.by_name("ce:GetCostAndUsage")
    assert len(calls.by_name("cloudwatch:GetMetricData")) == 1


@pytest.mark.usefixtures("calls")
def test_people_get_one_line_a_check_within_80_columns(run: Run) -> None:
    """The counts are the first line."""
    done = run("doctor", "--coverage")
    assert "credentials: arn:aws:iam::123456789012:user/ana" in done.stdout
    assert done.stdout.splitlines()[0].endswith(" ok, 1 not checked")
    assert max(map(len, map(str.rstrip, done.stdout.splitlines()))) <= 80


@pytest.mark.parametrize(
    "action",
    [
        action_name
        for action_name in permissions.actions_of_commands(permissions.READ_ONLY_COMMANDS, ())
        if "ce:" not in action_name
    ],
)
def test_a_missing_permission_is_named_with_what_to_do(
    calls: AwsCalls, run: Run, action: str
) -> None:
    """Each permission is tried with a real call; the exit code is 4."""
    calls.refuse(action, "AccessDeniedException")
    done = run("doctor", "--output", "json")
    failed = [check for check in checks(done).values() if check["state"] == "failed"]
    assert [check["name"] for check in failed] == [action]
    assert f"{action} is not permitted" in failed[0]["found"]
    assert "sageaudit doctor --policy" in failed[0]["next"]
    assert (done.exit_code, failed[0]["exit_code"]) == (4, 4)


def test_only_the_permissions_of_the_named_commands_are_checked(calls: AwsCalls, run: Run) -> None:
    """`doctor report --coverage` describes no job."""
    done = run("doctor", "report", "--coverage", "--output", "json")
    actions = {name for name in checks(done) if name.partition(":")[2].isalpha()}
    assert {name for name in actions if ":" in name} == {"ce:GetCostAndUsage"}
    assert not [call for call in calls.log if call.service == "sagemaker"]


@pytest.mark.parametrize(
    ("code", "state", "exit_code"), [("ThrottlingException", "failed", 5), (None, "ok", 0)]
)
def test_throttled_is_5_and_not_found_is_permitted(
    calls: AwsCalls, run: Run, code: str | None, state: str, exit_code: int
) -> None:
    """IAM decides before SageMaker looks for the job."""
    if code is not None:
        calls.refuse("sagemaker:DescribeTrainingJob", code)
    done = run("doctor", "audit", "--output", "json")
    assert checks(done)["sagemaker:DescribeTrainingJob"]["state"] == state
    assert done.exit_code == exit_code


@pytest.mark.parametrize(
    ("answer", "exit_code", "message", "next_"),
    [
        (ResponseParserError("not XML"), 5, "perhaps because of a proxy", "HTTPS_PROXY"),
        (EndpointConnectionError(endpoint_url="https://sts"), 5, "sts", "HTTPS_PROXY"),
        ({"Arn": "a"}, 5, "has no Account, perhaps because of a proxy", "HTTPS_PROXY"),
        ("ExpiredToken", 4, "aws sso login", None),
        ("RequestExpired", 4, "set its clock", None),
    ],
    ids=["HTML", "no network", "another answer", "expired", "late"],
)
def test_without_an_identity_the_reason_is_printed_and_nothing_more_is_read(
    calls: AwsCalls, run: Run, answer: Any, exit_code: int, message: str, next_: str | None
) -> None:
    """A proxy's page is not a bug. AWS refuses a clock that is more than five minutes off."""

    def sts(*_: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    if isinstance(answer, str):
        calls.refuse("sts:GetCallerIdentity", answer)
    else:
        calls.answer("sts:GetCallerIdentity", sts)
    done = run("doctor", "audit", "--output", "json")
    result = checks(done)
    whose = result["credentials"]
    assert (whose["state"], done.exit_code) == ("failed", exit_code)
    assert message in whose["found"]
    assert next_ in whose["next"] if next_ else whose["next"] is None
    assert result["permissions"]["state"] == "not_checked"


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(
    ("words", "exit_code", "name", "message"),
    [
        (["--region", "mars-north-1"], 2, "region", "not a region of SageMaker"),
        (["--region", "x"], 2, "AWS settings", "is not a region"),
        (["--profile", "absent"], 4, "AWS settings", "list-profiles"),
    ],
)
def test_settings_that_cannot_be_used_have_their_code(
    run: Run, words: list[str], exit_code: int, name: str, message: str
) -> None:
    """The remaining checks are still made if possible."""
    done = run("doctor", *words, "--output", "json")
    result = checks(done)
    assert message in result[name]["found"]
    assert done.exit_code == exit_code
    if name == "region":
        assert result["permissions"]["found"] == "cannot be checked without the region"


@pytest.mark.usefixtures("calls")
def test_a_history_file_is_opened(run: Run, tmp_path: Path) -> None:
    """A present file, a missing one and one of another tool each have a sentence and a code."""
    existing, foreign = tmp_path / "h.db", tmp_path / "other.db"
    SqliteHistory(existing).close()
    with closing(sqlite3.connect(foreign)) as connection, connection:
        connection.execute("create table t (x)")
    for path, state, code in (
        (existing, "ok", 0),
        (foreign, "failed", 2),
        (tmp_path / "no", "failed", 3),
    ):
        done = run("doctor", "prices", "--history", path, "--output", "json")
        assert checks(done)[f"history {path}"]["state"] == state
        assert done.exit_code == code


@pytest.mark.usefixtures("calls")
def test_no_history_yet_is_no_failure(run: Run) -> None:
    """A new user has none."""
    result = checks(run("doctor", "prices", "--output", "json"))
    [name] = [name for name in result if name.startswith("history ")]
    assert (result[name]["state"], result[name]["next"]) == ("ok", "`sageaudit scan` makes it")


@pytest.mark.usefixtures("calls")
def test_stored_items_that_cannot_be_read_are_named(run: Run, tmp_path: Path) -> None:
    """Each with its key and what to do; every command that left one out points to doctor."""
    path = tmp_path / "history.db"
    with SqliteHistory(path) as history:
        fill(history)
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute("UPDATE runs SET sums = '7' WHERE run = 1")
        sql.execute("UPDATE audits SET document = x'1f8b' WHERE run = 2")
        sql.execute("UPDATE decisions SET action = 'postpone' WHERE recommendation_id = 'abcdefgh'")
    done = run("doctor", "history", "--history", path, "--output", "json")
    found = checks(done)[f"history {path}, stored items"]["found"]
    assert done.exit_code != 0
    for named in ("training-job/a#", "training-job/b#", "recommendation_id abcdefgh"):
        assert named in found
    listed = run("history", "--history", path, "--since", "2026-11-01")
    assert "what was printed lacks 1 stored item that cannot be read" in listed.stderr
    assert f"sageaudit doctor --history {path}" in listed.stderr


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("ours", 0, "permitted"),
        ("other", 3, "is not a history of sageaudit"),
        ("absent", 3, "There is no table"),
    ],
)
@pytest.mark.usefixtures("calls")
def test_a_table_is_read_by_key_and_by_index(run: Run, kind: str, code: int, message: str) -> None:
    """A table of another tool and a missing table have different results."""
    client = boto3.client("dynamodb", region_name=REGION)
    name = "absent-table"
    if kind == "ours":
        name = new_table(client)
    elif kind == "other":
        name = "other-table"
        client.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
    done = run("doctor", "history", "--table", name, "--output", "json")
    result = checks(done)
    of_table = [check for name, check in result.items() if name.startswith("table ")]
    if kind == "ours":
        assert of_table.pop()["found"] == "all 0 can be read"
    assert {check["found"] for check in of_table} == {of_table[0]["found"]}
    assert message in of_table[0]["found"]
    assert len(of_table) == (2 if kind == "ours" else 1)
    assert done.exit_code == code


def test_a_role_is_assumed_in_each_account_and_its_permissions_are_checked(
    calls: AwsCalls, run: Run
) -> None:
    """Each account has one line: assumed, without a permission, or refused."""
    calls.refuse("sts:AssumeRole", "AccessDenied", when=lambda p: ABSENT in p["RoleArn"])
    calls.refuse("sagemaker:ListTransformJobs", "AccessDeniedException", OTHER)
    words = [word for action_name in (OWN, OTHER, ABSENT) for word in ("--account", action_name)]
    done = run("doctor", "scan", *words, "--role", "reader", "--output", "json")
    result = checks(done)
    assert result[f"account {OWN}"]["state"] == "ok"
    assert "sagemaker:ListTransformJobs" in result[f"reader in {OTHER}"]["found"]
    assert "cannot be assumed" in result[f"reader in {ABSENT}"]["found"]
    assert done.exit_code == 4


def test_the_policy_needs_no_aws(calls: AwsCalls, run: Run) -> None:
    """IAM accepts the JSON, which names the kinds of job, region, table and role."""
    calls.log.clear()
    words = ("--table", "audits", "--role", "reader", "--region", "eu-west-1")
    done = run("doctor", "--policy", "scan", "history", *words)
    policy = done.document()
    assert policy["Version"] == "2012-10-17"
    resources = {
        action_name: part["Resource"]
        for part in policy["Statement"]
        for action_name in part["Action"]
    }
    training = "arn:aws:sagemaker:eu-west-1:*:training-job/*"
    assert resources["sagemaker:DescribeTrainingJob"][0] == training
    assert resources["dynamodb:GetItem"] == [
        "arn:aws:dynamodb:eu-west-1:*:table/audits",
        "arn:aws:dynamodb:eu-west-1:*:table/audits/index/*",
    ]
    assert resources["sts:AssumeRole"] == "arn:aws:iam::*:role/reader"
    assert not calls.log


def test_a_partition_without_a_price_list_is_not_asked_for_prices(
    calls: AwsCalls, run: Run
) -> None:
    """This is not a failure: the packaged prices are used there."""
    done = run("doctor", "--region", "us-gov-west-1", "--output", "json")
    check = checks(done)["pricing:GetProducts"]
    assert (check["state"], check["found"]) == (
        "not_checked",
        "aws-us-gov has no Price List endpoint",
    )
    assert done.exit_code == 0, done.stdout
    assert not calls.by_name("pricing:GetProducts")


def test_the_policies_of_a_deployment_are_printed_one_at_a_time(run: Run) -> None:
    """They are for who runs `make deploy` and for CloudFormation's role."""
    deploy = run("doctor", "--policy", "deploy", "--qualifier", "platform", "--region", "eu-west-1")
    [assumed] = [part for part in deploy.document()["Statement"] if "sts:" in part["Action"][0]]
    assert all("cdk-platform-" in resource for resource in assumed["Resource"])
    members = run("doctor", "--policy", "deploy", "--members").document()["Statement"]
    assert len(members) > len(deploy.document()["Statement"])
    execution = run("doctor", "--policy", "execution").document()["Statement"]
    assert any("lambda:CreateFunction" in part["Action"] for part in execution)
    both = run("doctor", "--policy", "deploy", "scan")
    assert both.exit_code == 2
    assert "print each one alone" in both.stderr


def test_the_policies_of_a_deployment_are_only_printed(run: Run) -> None:
    """`doctor` has no harmless call for what a deployment changes."""
    done = run("doctor", "deploy")
    assert done.exit_code == 2
    assert "add --policy" in done.stderr
