"""`sageaudit scan` of several accounts: moto has each account's jobs and the roles to assume."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from rich.console import Console

from sageaudit.adapters.aws.accounts import AccountClients, home_region
from sageaudit.cli.views import scan as view
from sageaudit.domain.audit.sums import Sums
from sageaudit.workflows.scan.tally import AccountStatus
from tests.fakes.aws_calls import AwsCalls, aws_calls
from tests.fakes.command_line import Result, Run
from tests.fakes.cost_explorer import cost_and_usage

OWN = "123456789012"
"""Moto's account of credentials that it did not give out."""
FIRST, SECOND, ABSENT = "222233334444", "333344445555", "444455556666"
ROLE = "sageaudit-read"
REGION = "us-east-1"


class Cloud:
    """Several accounts in moto; a role that is not trusted is refused, as by AWS."""

    def __init__(self, calls: AwsCalls) -> None:
        self.calls = calls
        self.session = boto3.Session(region_name=REGION)
        calls.refuse(
            "sts:AssumeRole", "AccessDenied", when=lambda params: ABSENT in params["RoleArn"]
        )

    def client(self, account: str, service: str) -> Any:
        """Returns a client of one account."""
        if account == OWN:
            return self.session.client(service)
        answer = self.session.client("sts").assume_role(
            RoleArn=f"arn:aws:iam::{account}:role/{ROLE}", RoleSessionName="test"
        )["Credentials"]
        return self.session.client(
            service,
            aws_access_key_id=answer["AccessKeyId"],
            aws_secret_access_key=answer["SecretAccessKey"],
            aws_session_token=answer["SessionToken"],
        )

    def add(self, account: str, name: str) -> None:
        """Adds one finished training job to an account."""
        self.client(account, "sagemaker").create_training_job(
            TrainingJobName=name,
            RoleArn=f"arn:aws:iam::{account}:role/x",
            AlgorithmSpecification={"TrainingImage": "image", "TrainingInputMode": "File"},
            OutputDataConfig={"S3OutputPath": "s3://bucket/"},
            ResourceConfig={
                "InstanceType": "ml.m5.large",
                "InstanceCount": 1,
                "VolumeSizeInGB": 10,
            },
            StoppingCondition={"MaxRuntimeInSeconds": 3600},
        )


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cloud]:
    """Yields three accounts with jobs; the credentials are those of one of them."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIAOWN",
        "AWS_SECRET_ACCESS_KEY": "own",
        "AWS_DEFAULT_REGION": REGION,
        "XDG_DATA_HOME": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MOTO_ACCOUNT_ID")  # moto: the account of the credentials
    with mock_aws(), aws_calls() as calls:
        yield Cloud(calls)


@pytest.fixture
def scan(cloud: Cloud, run: Run, tmp_path: Path) -> Run:
    """Returns a function that scans several accounts through the role."""
    del cloud

    def call(
        *words: str | Path,
        accounts: tuple[str, ...] = (OWN, FIRST, SECOND, ABSENT),
        role: str | None = ROLE,
    ) -> Result:
        options = () if role is None else ("--role", role)
        return run(
            "scan", *(f"--account={account_id}" for account_id in accounts), *options, *words
        )

    return call


def document(done: Result) -> Any:
    """Returns the JSON of a scan with any exit code."""
    return json.loads(done.stdout, parse_float=Decimal)


def test_every_account_has_a_row_and_a_refusal_does_not_stop_the_others(
    cloud: Cloud, scan: Run
) -> None:
    """Your own account is read without a role; the exit code follows the results."""
    cloud.add(OWN, "own-1")
    cloud.add(FIRST, "first-1")
    done = scan("--output", "json")
    result = document(done)
    rows = {row["account"]: row for row in result["accounts"]}
    assert {account: row["status"] for account, row in rows.items()} == {
        OWN: "audited",
        FIRST: "audited",
        SECOND: "no_jobs",
        ABSENT: "role_refused",
    }
    assert (rows[OWN]["jobs"]["audited"], rows[FIRST]["jobs"]["audited"]) == (1, 1)
    assert rows[ABSENT]["reasons"][0].startswith(f"arn:aws:iam::{ABSENT}:role/{ROLE} cannot be")
    assert result["ranking"]["total"]["jobs"] == 2
    assert sum(row["total_usd"] for row in rows.values()) == result["ranking"]["total"]["total_usd"]
    assert done.exit_code == 4
    roles = [call.params["RoleArn"] for call in cloud.calls.by_name("sts:AssumeRole")]
    assert f"arn:aws:iam::{OWN}:role/{ROLE}" not in roles


def test_each_account_is_read_with_its_own_credentials_and_prices_once(
    cloud: Cloud, scan: Run
) -> None:
    """A job is described in its own account; the price list is read with your own account."""
    cloud.add(OWN, "own-1")
    cloud.add(FIRST, "first-1")
    cloud.calls.log.clear()
    scan()
    described = cloud.calls.by_name("sagemaker:DescribeTrainingJob")
    assert {(call.account, call.params["TrainingJobName"]) for call in described} == {
        (OWN, "own-1"),
        (FIRST, "first-1"),
    }
    assert {call.account for call in cloud.calls.by_name("pricing:GetProducts")} <= {OWN}


def test_all_accounts_are_in_one_history(cloud: Cloud, scan: Run) -> None:
    """A later scan of one account ranks that one, and counts nothing twice."""
    cloud.add(FIRST, "first-1")
    cloud.add(OWN, "own-1")
    assert document(scan("--output", "json"))["ranking"]["total"]["jobs"] == 2
    assert document(scan("--output", "json"))["ranking"]["total"]["jobs"] == 2
    alone = document(scan("--output", "json", accounts=(FIRST,)))
    assert alone["ranking"]["total"]["jobs"] == 1


def test_an_account_whose_lists_are_denied_is_partly_audited_or_denied(
    cloud: Cloud, scan: Run
) -> None:
    """The denied action is named, and the other accounts are audited."""
    cloud.add(OWN, "own-1")
    cloud.calls.refuse("sagemaker:ListTrainingJobs", "AccessDeniedException", FIRST)
    done = scan("--output", "json", accounts=(OWN, FIRST))
    rows = {row["account"]: row for row in document(done)["accounts"]}
    assert (rows[OWN]["status"], rows[FIRST]["status"]) == ("audited", "partly")
    assert "sagemaker:ListTrainingJobs" in rows[FIRST]["reasons"][0]
    assert done.exit_code == 4


@pytest.mark.parametrize(
    ("code", "status", "exit_code"),
    [
        ("AccessDenied", "role_refused", 4),
        ("ExpiredToken", "no_credentials", 4),
        ("Throttling", "throttled", 5),
        ("InternalFailure", "unavailable", 5),
    ],
)
def test_why_an_account_was_not_audited_has_a_word_and_a_code(
    cloud: Cloud, scan: Run, code: str, status: str, exit_code: int
) -> None:
    """Scripts get the word, people a sentence."""
    cloud.calls.refuse("sts:AssumeRole", code)
    done = scan("--output", "json", accounts=(OWN, FIRST))
    assert [row["status"] for row in document(done)["accounts"]] == ["no_jobs", status]
    assert done.exit_code == exit_code


def test_a_roles_credentials_are_renewed_before_they_expire(cloud: Cloud) -> None:
    """A new client has new credentials."""
    expires = [datetime.now(UTC) + timedelta(minutes=minutes) for minutes in (5, 60)]
    keys = iter(("ASIAFIRST", "ASIASECOND", "ASIATHIRD"))

    def answer(_: str, __: Any) -> Any:
        result = {"AccessKeyId": next(keys), "SecretAccessKey": "x", "SessionToken": "y"}
        arn = f"arn:aws:sts::{FIRST}:assumed-role/{ROLE}/sageaudit"
        return {
            "Credentials": {**result, "Expiration": expires.pop(0)},
            "AssumedRoleUser": {"AssumedRoleId": "x", "Arn": arn},
        }

    cloud.calls.answer("sts:AssumeRole", answer)
    role = f"arn:aws:iam::{FIRST}:role/{ROLE}"
    client_of = AccountClients(cloud.session, OWN, {FIRST: role}.get, time.time).client_factory(
        "sagemaker"
    )
    for _ in range(3):
        client_of(FIRST, REGION).list_training_jobs()
    assert len(cloud.calls.by_name("sts:AssumeRole")) == 2, "expiring in 5 minutes is too soon"


def test_the_external_id_and_a_path_are_sent_with_the_role(cloud: Cloud, scan: Run) -> None:
    """The role's trust policy requires them; the session name identifies sageaudit."""
    scan("--external-id", "team-7", accounts=(FIRST,), role="audit/reader")
    [arguments] = cloud.calls.by_name("sts:AssumeRole")
    assert arguments.params == {
        "RoleArn": f"arn:aws:iam::{FIRST}:role/audit/reader",
        "RoleSessionName": "sageaudit",
        "ExternalId": "team-7",
    }


def organization(*rows: dict[str, str]) -> Any:
    """Makes Organizations return one account a page."""

    def answer(_: str, params: Any) -> dict[str, Any]:
        at = int(params.get("NextToken", 0))
        more = {"NextToken": str(at + 1)} if at + 1 < len(rows) else {}
        return {"Accounts": [rows[at]], **more}

    return answer


def test_the_active_accounts_of_an_organization_are_read(cloud: Cloud, run: Run) -> None:
    """Pages are read one by one; State decides, or Status if a response has no State."""
    cloud.add(FIRST, "first-1")
    cloud.calls.answer(
        "organizations:ListAccounts",
        organization(
            {"Id": SECOND, "Name": "sleeping", "State": "SUSPENDED", "Status": "ACTIVE"},
            {"Id": FIRST, "Name": "research\x1b[2J", "State": "ACTIVE"},
            {"Id": OWN, "Name": "management", "Status": "ACTIVE"},
        ),
    )
    done = run("scan", "--organization", "--role", ROLE)
    assert done.exit_code == 0, done.stderr
    assert "2 accounts" in done.stdout
    assert "management" in done.stdout
    assert SECOND not in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("code", "exit_code", "message"),
    [
        ("AccessDeniedException", 4, "management account or of a delegated administrator"),
        ("AWSOrganizationsNotInUseException", 2, "is in no organization; name the accounts with"),
        ("TooManyRequestsException", 5, "organizations:ListAccounts is throttled"),
    ],
)
def test_an_organization_that_cannot_be_listed_is_one_sentence(
    cloud: Cloud, run: Run, code: str, exit_code: int, message: str
) -> None:
    """Nothing is scanned."""
    cloud.calls.refuse("organizations:ListAccounts", code)
    done = run("scan", "--organization", "--role", ROLE)
    assert (done.exit_code, done.stdout) == (exit_code, "")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("own_account", "regions", "all_accounts", "home"),
    [
        ("eu-west-1", ["af-south-1", "eu-west-1"], True, "eu-west-1"),
        (None, ["af-south-1", "eu-west-1"], True, "us-east-1"),
        (None, ["af-south-1"], False, "af-south-1"),
        ("eu-west-1", ["cn-north-1"], False, "cn-north-1"),
    ],
)
def test_roles_are_assumed_in_a_region_that_is_enabled(
    own_account: str | None, regions: list[str], all_accounts: bool, home: str
) -> None:
    """The first of all regions may not be enabled; partitions have their own roles."""
    session = SimpleNamespace(region_name=own_account)
    assert home_region(session, regions, all_regions=all_accounts) == home


def test_other_accounts_need_a_role(cloud: Cloud, scan: Run) -> None:
    """Only your own account needs none."""
    cloud.add(OWN, "own-1")
    refused = scan(accounts=(OWN, FIRST), role=None)
    assert refused.exit_code == 2
    assert f"--account names {FIRST}, which is not your own account {OWN}" in refused.stderr
    assert scan(accounts=(OWN,), role=None).exit_code == 0


def test_a_limit_counts_the_jobs_of_all_accounts(cloud: Cloud, scan: Run) -> None:
    """The jobs that ended last are audited, in any account."""
    for account, name in ((OWN, "own-1"), (FIRST, "first-1"), (SECOND, "second-1")):
        cloud.add(account, name)
    result = document(scan("--limit", "2", "--output", "json"))
    assert sum(row["jobs"]["audited"] for row in result["accounts"]) == 2


def bill(_: str, params: Any) -> dict[str, Any]:
    """Makes Cost Explorer return dollars by usage type and region, or by account."""
    if [group["Key"] for group in params["GroupBy"]] == ["LINKED_ACCOUNT"]:
        return cost_and_usage([([OWN], 1, 40), ([FIRST], 1, 13)])
    usage = (
        ("USE1-Train:ml.m5.large", "us-east-1", "12"),
        ("USE1-Host:ml.m5.large", "us-east-1", "30.5"),
        ("USE1-Notebk:VolumeUsage.gp2", "us-east-1", "3"),
        ("EU-Train:ml.m5.large", "eu-west-1", "7"),
        ("USE1-Weird:thing", "us-east-1", "0.5"),
    )
    return cost_and_usage(((name, region), 1, usd) for name, region, usd in usage)


def test_the_first_line_compares_the_audited_dollars_with_the_bill(
    cloud: Cloud, run: Run, tmp_path: Path
) -> None:
    """The cost of the requests is printed before. Usage that no audit covers has its own rows."""
    cloud.add(OWN, "own-1")
    cloud.calls.answer("ce:GetCostAndUsage", bill)
    done = run("scan", "--coverage", "--history", tmp_path / "h.db")
    today = datetime.now(UTC).date()
    days = f"{today - timedelta(days=30)}..{today}"
    first = done.stdout.splitlines()[0]
    assert first == f"$0.00 of the $53.00 SageMaker bill for {days} was audited (0%)"
    for name in ("endpoints", "storage of notebooks", "jobs in regions that", "Weird:thing"):
        assert name in done.stdout
    assert "--coverage takes 1 Cost Explorer request or more at $0.01 each" in done.stderr
    [arguments] = cloud.calls.by_name("ce:GetCostAndUsage")
    assert arguments.params["TimePeriod"]["End"] == str(today + timedelta(days=1))
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_report_shows_which_part_of_the_bill_are_no_jobs(
    cloud: Cloud, run: Run, tmp_path: Path
) -> None:
    """--coverage adds it; a history with other accounts is compared only for your own."""
    cloud.add(OWN, "own-1")
    history, page = tmp_path / "h.db", tmp_path / "page.html"
    run("scan", "--history", history)
    cloud.calls.answer("ce:GetCostAndUsage", bill)
    done = run("report", "--coverage", "--history", history, "-o", page)
    assert done.exit_code == 0
    assert "SageMaker bill for" in page.read_text()
    assert "Not audited: " in page.read_text()
    assert "storage of notebooks $" in page.read_text()
    cloud.calls.refuse("ce:GetCostAndUsage", "AccessDeniedException")
    done = run("report", "--coverage", "--history", history, "-o", page)
    assert (done.exit_code, "SageMaker bill for" in page.read_text()) == (4, False)


def test_all_accounts_are_read_at_once(cloud: Cloud, scan: Run) -> None:
    """There are two requests for any number of accounts.

    A bill that cannot be read is unknown, never 0.
    """
    cloud.add(FIRST, "first-1")
    cloud.calls.answer("ce:GetCostAndUsage", bill)
    covered = document(scan("--coverage", "--output", "json"))["coverage"]
    arguments = cloud.calls.by_name("ce:GetCostAndUsage")
    assert [call.account for call in arguments] == [OWN, OWN]
    assert arguments[0].params["Filter"]["And"][1]["Dimensions"] == {
        "Key": "LINKED_ACCOUNT",
        "Values": [OWN, FIRST, SECOND, ABSENT],
    }
    bills = {row["account"]: row["bill_usd"] for row in covered["accounts"]}
    assert bills == {OWN: 40, FIRST: 13, SECOND: None, ABSENT: None}


@pytest.mark.parametrize(
    ("code", "exit_code"), [("AccessDeniedException", 4), ("LimitExceededException", 5)]
)
def test_the_scan_continues_without_the_bill(
    cloud: Cloud, run: Run, tmp_path: Path, code: str, exit_code: int
) -> None:
    """It prints one sentence, the results, and then sets the exit code."""
    cloud.add(OWN, "own-1")
    cloud.calls.refuse("ce:GetCostAndUsage", code)
    done = run("scan", "--coverage", "--output", "json", "--history", tmp_path / "h.db")
    result = document(done)
    assert (result["coverage"], result["ranking"]["total"]["jobs"]) == (None, 1)
    assert "is not known: ce:GetCostAndUsage" in done.stderr
    assert done.exit_code == exit_code


def test_a_dry_run_prints_what_the_bill_would_cost_and_does_not_read_it(
    cloud: Cloud, run: Run, tmp_path: Path
) -> None:
    """It costs nothing."""
    done = run("scan", "--coverage", "--dry-run", "--history", tmp_path / "h.db")
    assert "about $0.01" in done.stderr
    assert not cloud.calls.by_name("ce:GetCostAndUsage")


@pytest.mark.parametrize(("width", "options"), [(80, False), (110, True)])
def test_the_rows_of_accounts_fit_the_terminal(width: int, options: bool) -> None:
    """Large amounts leave no room for names in 80 columns."""
    millions = Decimal("1234567.89")
    sums = Sums(jobs=12_345, total_usd=millions, avoidable_usd=millions, lost_usd=millions)
    status = AccountStatus(OWN, "research", listed_job_count=12_346, sums=sums)
    console = Console(width=width, record=True, file=StringIO())
    view.show_accounts([status], console)
    output = console.export_text()
    assert max(len(line.rstrip()) for line in output.splitlines()) <= width
    assert output.count("$1,234,567.89") == 3
    assert "partly" in output
    assert ("research" in output) is options


def test_a_role_that_cannot_be_renewed_ends_only_its_account(cloud: Cloud, scan: Run) -> None:
    """The jobs of the other accounts are audited and stored."""
    cloud.add(OWN, "own-1")
    arguments: list[str] = []

    def answer(account: str, _: Any) -> Any:
        arguments.append(account)
        if len(arguments) > 1:
            error = {"Code": "ExpiredToken", "Message": "expired"}
            raise ClientError({"Error": error, "ResponseMetadata": {}}, "AssumeRole")
        result = {"AccessKeyId": "ASIAFIRST", "SecretAccessKey": "x", "SessionToken": "y"}
        arn = f"arn:aws:sts::{FIRST}:assumed-role/{ROLE}/sageaudit"
        return {
            "Credentials": {**result, "Expiration": datetime.now(UTC) + timedelta(minutes=5)},
            "AssumedRoleUser": {"AssumedRoleId": "x", "Arn": arn},
        }

    cloud.calls.answer("sts:AssumeRole", answer)
    done = scan("--output", "json", accounts=(OWN, FIRST))
    rows = {row["account"]: row for row in document(done)["accounts"]}
    assert (rows[OWN]["status"], rows[FIRST]["status"]) == ("audited", "no_credentials")
    assert "aws sso login" in rows[FIRST]["reasons"][0]
    assert done.exit_code == 4
