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
    """Several accounts in moto; a role that is not trusted is refused, as AWS does."""

    def __init__(self, calls: AwsCalls) -> None:
        self.calls = calls
        self.session = boto3.Session(region_name=REGION)
        calls.refuse(
            "sts:AssumeRole", "AccessDenied", when=lambda params: ABSENT in params["RoleArn"]
        )

    def client(self, account: str, service: str) -> Any:
        """A client of one account."""
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
        """Puts one finished training job into an account."""
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
    """Three accounts with jobs, in whose own one the credentials are."""
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
    """`sageaudit scan` of several accounts through the role."""
    del cloud

    def call(
        *words: str | Path,
        accounts: tuple[str, ...] = (OWN, FIRST, SECOND, ABSENT),
        role: str | None = ROLE,
    ) -> Result:
        named = () if role is None else ("--role", role)
        return run("scan", *(f"--account={one}" for one in accounts), *named, *words)

    return call


def document(done: Result) -> Any:
    """The JSON of a scan, whatever its exit code."""
    return json.loads(done.stdout, parse_float=Decimal)


def test_every_account_has_a_row_and_one_that_refuses_stops_no_other(
    cloud: Cloud, scan: Run
) -> None:
    """The own one is read without a role; the exit code comes after the results."""
    cloud.add(OWN, "own-1")
    cloud.add(FIRST, "first-1")
    done = scan("--output", "json")
    found = document(done)
    rows = {row["account"]: row for row in found["accounts"]}
    assert {account: row["status"] for account, row in rows.items()} == {
        OWN: "audited",
        FIRST: "audited",
        SECOND: "no_jobs",
        ABSENT: "role_refused",
    }
    assert (rows[OWN]["jobs"]["audited"], rows[FIRST]["jobs"]["audited"]) == (1, 1)
    assert rows[ABSENT]["reasons"][0].startswith(f"arn:aws:iam::{ABSENT}:role/{ROLE} cannot be")
    assert found["ranking"]["total"]["jobs"] == 2
    assert sum(row["total_usd"] for row in rows.values()) == found["ranking"]["total"]["total_usd"]
    assert done.exit_code == 4
    roles = [call.params["RoleArn"] for call in cloud.calls.by_name("sts:AssumeRole")]
    assert f"arn:aws:iam::{OWN}:role/{ROLE}" not in roles


def test_each_account_is_asked_with_its_own_credentials_and_prices_once(
    cloud: Cloud, scan: Run
) -> None:
    """A job is described by the account it is in; the price list is the own account's."""
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
    """A later scan of one of them ranks that one, and counts nothing twice."""
    cloud.add(FIRST, "first-1")
    cloud.add(OWN, "own-1")
    assert document(scan("--output", "json"))["ranking"]["total"]["jobs"] == 2
    assert document(scan("--output", "json"))["ranking"]["total"]["jobs"] == 2
    alone = document(scan("--output", "json", accounts=(FIRST,)))
    assert alone["ranking"]["total"]["jobs"] == 1


def test_an_account_whose_lists_are_denied_is_partly_audited_or_denied(
    cloud: Cloud, scan: Run
) -> None:
    """It says which action, and the other accounts are audited."""
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
    """For scripts as for people."""
    cloud.calls.refuse("sts:AssumeRole", code)
    done = scan("--output", "json", accounts=(OWN, FIRST))
    assert [row["status"] for row in document(done)["accounts"]] == ["no_jobs", status]
    assert done.exit_code == exit_code


def test_a_roles_credentials_are_renewed_before_they_expire(cloud: Cloud) -> None:
    """A new client has new ones."""
    expires = [datetime.now(UTC) + timedelta(minutes=minutes) for minutes in (5, 60)]
    keys = iter(("ASIAFIRST", "ASIASECOND", "ASIATHIRD"))

    def answer(_: str, __: Any) -> Any:
        found = {"AccessKeyId": next(keys), "SecretAccessKey": "x", "SessionToken": "y"}
        arn = f"arn:aws:sts::{FIRST}:assumed-role/{ROLE}/sageaudit"
        return {
            "Credentials": {**found, "Expiration": expires.pop(0)},
            "AssumedRoleUser": {"AssumedRoleId": "x", "Arn": arn},
        }

    cloud.calls.answer("sts:AssumeRole", answer)
    role = f"arn:aws:iam::{FIRST}:role/{ROLE}"
    client_of = AccountClients(cloud.session, OWN, {FIRST: role}, time.time).client_factory(
        "sagemaker"
    )
    for _ in range(3):
        client_of(FIRST, REGION).list_training_jobs()
    assert len(cloud.calls.by_name("sts:AssumeRole")) == 2, "expiring in 5 minutes is too soon"


def test_the_external_id_and_a_path_go_with_the_role(cloud: Cloud, scan: Run) -> None:
    """As the role's trust policy wants it; the session name says who asks."""
    scan("--external-id", "team-7", accounts=(FIRST,), role="audit/reader")
    [asked] = cloud.calls.by_name("sts:AssumeRole")
    assert asked.params == {
        "RoleArn": f"arn:aws:iam::{FIRST}:role/audit/reader",
        "RoleSessionName": "sageaudit",
        "ExternalId": "team-7",
    }


def organization(*rows: dict[str, str]) -> Any:
    """Organizations' answer: one account a page."""

    def answer(_: str, params: Any) -> dict[str, Any]:
        at = int(params.get("NextToken", 0))
        more = {"NextToken": str(at + 1)} if at + 1 < len(rows) else {}
        return {"Accounts": [rows[at]], **more}

    return answer


def test_the_active_accounts_of_an_organization_are_asked(cloud: Cloud, run: Run) -> None:
    """Page by page; State decides, and Status where an answer has no State."""
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
    ("code", "exit_code", "said"),
    [
        ("AccessDeniedException", 4, "management account or of a delegated administrator"),
        ("AWSOrganizationsNotInUseException", 2, "is in no organization; name the accounts with"),
        ("TooManyRequestsException", 5, "organizations:ListAccounts is throttled"),
    ],
)
def test_an_organization_that_cannot_be_listed_is_one_sentence(
    cloud: Cloud, run: Run, code: str, exit_code: int, said: str
) -> None:
    """Nothing is scanned then."""
    cloud.calls.refuse("organizations:ListAccounts", code)
    done = run("scan", "--organization", "--role", ROLE)
    assert (done.exit_code, done.stdout) == (exit_code, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("own", "regions", "every", "home"),
    [
        ("eu-west-1", ["af-south-1", "eu-west-1"], True, "eu-west-1"),
        (None, ["af-south-1", "eu-west-1"], True, "us-east-1"),
        (None, ["af-south-1"], False, "af-south-1"),
        ("eu-west-1", ["cn-north-1"], False, "cn-north-1"),
    ],
)
def test_roles_are_assumed_in_a_region_that_is_enabled(
    own: str | None, regions: list[str], every: bool, home: str
) -> None:
    """Of all regions, the first one may have to be enabled; partitions have their own roles."""
    session = SimpleNamespace(region_name=own)
    assert home_region(session, regions, all_regions=every) == home


def test_other_accounts_need_a_role(cloud: Cloud, scan: Run) -> None:
    """The own one alone needs none."""
    cloud.add(OWN, "own-1")
    refused = scan(accounts=(OWN, FIRST), role=None)
    assert refused.exit_code == 2
    assert f"--account names {FIRST}, which is not your own account {OWN}" in refused.stderr
    assert scan(accounts=(OWN,), role=None).exit_code == 0


def test_a_limit_counts_the_jobs_of_all_accounts(cloud: Cloud, scan: Run) -> None:
    """Those that ended last, wherever they ran."""
    for account, name in ((OWN, "own-1"), (FIRST, "first-1"), (SECOND, "second-1")):
        cloud.add(account, name)
    found = document(scan("--limit", "2", "--output", "json"))
    assert sum(row["jobs"]["audited"] for row in found["accounts"]) == 2


def bill(_: str, params: Any) -> dict[str, Any]:
    """Cost Explorer's answer: dollars by usage type and region, or by account."""
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


def test_the_first_line_puts_the_audited_dollars_beside_the_bill(
    cloud: Cloud, run: Run, tmp_path: Path
) -> None:
    """What it costs is said before; what no audit covers has its rows."""
    cloud.add(OWN, "own-1")
    cloud.calls.answer("ce:GetCostAndUsage", bill)
    done = run("scan", "--coverage", "--history", tmp_path / "h.db")
    today = datetime.now(UTC).date()
    days = f"{today - timedelta(days=30)}..{today}"
    first = done.stdout.splitlines()[0]
    assert first == f"$0.00 of the $53.00 SageMaker bill of {days} was audited (0%)"
    for name in ("endpoints", "storage of notebooks", "jobs in regions that", "Weird:thing"):
        assert name in done.stdout
    assert "--coverage takes 1 Cost Explorer request or more at $0.01 each" in done.stderr
    [asked] = cloud.calls.by_name("ce:GetCostAndUsage")
    assert asked.params["TimePeriod"]["End"] == str(today + timedelta(days=1))
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_report_says_beside_its_headline_what_of_the_bill_are_no_jobs(
    cloud: Cloud, run: Run, tmp_path: Path
) -> None:
    """When it is asked; of a history with other accounts only for your own."""
    cloud.add(OWN, "own-1")
    history, page = tmp_path / "h.db", tmp_path / "page.html"
    run("scan", "--history", history)
    cloud.calls.answer("ce:GetCostAndUsage", bill)
    done = run("report", "--coverage", "--history", history, "-o", page)
    assert done.exit_code == 0
    assert "SageMaker bill of" in page.read_text()
    assert "Not audited: " in page.read_text()
    assert "storage of notebooks $" in page.read_text()
    cloud.calls.refuse("ce:GetCostAndUsage", "AccessDeniedException")
    done = run("report", "--coverage", "--history", history, "-o", page)
    assert (done.exit_code, "SageMaker bill of" in page.read_text()) == (4, False)


def test_all_accounts_are_asked_for_at_once(cloud: Cloud, scan: Run) -> None:
    """Two requests for any number; a bill that is not seen is not known, never 0."""
    cloud.add(FIRST, "first-1")
    cloud.calls.answer("ce:GetCostAndUsage", bill)
    covered = document(scan("--coverage", "--output", "json"))["coverage"]
    asked = cloud.calls.by_name("ce:GetCostAndUsage")
    assert [call.account for call in asked] == [OWN, OWN]
    assert asked[0].params["Filter"]["And"][1]["Dimensions"] == {
        "Key": "LINKED_ACCOUNT",
        "Values": [OWN, FIRST, SECOND, ABSENT],
    }
    bills = {row["account"]: row["bill_usd"] for row in covered["accounts"]}
    assert bills == {OWN: 40, FIRST: 13, SECOND: None, ABSENT: None}


@pytest.mark.parametrize(
    ("code", "exit_code"), [("AccessDeniedException", 4), ("LimitExceededException", 5)]
)
def test_without_an_answer_about_the_bill_the_scan_goes_on(
    cloud: Cloud, run: Run, tmp_path: Path, code: str, exit_code: int
) -> None:
    """One sentence, the results, and then the code."""
    cloud.add(OWN, "own-1")
    cloud.calls.refuse("ce:GetCostAndUsage", code)
    done = run("scan", "--coverage", "--output", "json", "--history", tmp_path / "h.db")
    found = document(done)
    assert (found["coverage"], found["ranking"]["total"]["jobs"]) == (None, 1)
    assert "is not known: ce:GetCostAndUsage" in done.stderr
    assert done.exit_code == exit_code


def test_a_dry_run_says_what_the_bill_would_cost_and_does_not_ask(
    cloud: Cloud, run: Run, tmp_path: Path
) -> None:
    """Nothing is spent."""
    done = run("scan", "--coverage", "--dry-run", "--history", tmp_path / "h.db")
    assert "about $0.01" in done.stderr
    assert not cloud.calls.by_name("ce:GetCostAndUsage")


@pytest.mark.parametrize(("width", "named"), [(80, False), (110, True)])
def test_the_rows_of_accounts_fit_the_terminal(width: int, named: bool) -> None:
    """Large amounts leave no room for names in 80 columns."""
    millions = Decimal("1234567.89")
    sums = Sums(jobs=12_345, total_usd=millions, avoidable_usd=millions, lost_usd=millions)
    status = AccountStatus(OWN, "research", listed=12_346, sums=sums)
    console = Console(width=width, record=True, file=StringIO())
    view.show_accounts([status], console)
    shown = console.export_text()
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= width
    assert shown.count("$1,234,567.89") == 3
    assert "partly" in shown
    assert ("research" in shown) is named


def test_a_role_that_cannot_be_renewed_ends_its_account_alone(cloud: Cloud, scan: Run) -> None:
    """What the other accounts have is audited and kept."""
    cloud.add(OWN, "own-1")
    asked: list[str] = []

    def answer(account: str, _: Any) -> Any:
        asked.append(account)
        if len(asked) > 1:
            error = {"Code": "ExpiredToken", "Message": "expired"}
            raise ClientError({"Error": error, "ResponseMetadata": {}}, "AssumeRole")
        found = {"AccessKeyId": "ASIAFIRST", "SecretAccessKey": "x", "SessionToken": "y"}
        arn = f"arn:aws:sts::{FIRST}:assumed-role/{ROLE}/sageaudit"
        return {
            "Credentials": {**found, "Expiration": datetime.now(UTC) + timedelta(minutes=5)},
            "AssumedRoleUser": {"AssumedRoleId": "x", "Arn": arn},
        }

    cloud.calls.answer("sts:AssumeRole", answer)
    done = scan("--output", "json", accounts=(OWN, FIRST))
    rows = {row["account"]: row for row in document(done)["accounts"]}
    assert (rows[OWN]["status"], rows[FIRST]["status"]) == ("audited", "no_credentials")
    assert "aws sso login" in rows[FIRST]["reasons"][0]
    assert done.exit_code == 4
