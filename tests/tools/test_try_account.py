"""`make try` on the local AWS: the whole try, what goes wrong, and that nothing is left."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest
from click.testing import CliRunner
from moto import mock_aws

from infra.names import FINGERPRINT_KEY, TAG
from local import ACCOUNT, REGION
from local.pricing import refuse_prices
from local.requests import RequestRouter
from local.stack import adapt_to_moto
from tests.fakes.once import make_once
from tests.fakes.try_world import NAMES, START, TryWorld, try_world
from tools.try_account import __main__ as command
from tools.try_account import removal
from tools.try_account.account import Account, make_names, stack_name
from tools.try_account.checklist import EXPECTED, Check, Fact, checklist_text
from tools.try_account.cost import MAX_USD, CannotTry, image_uri, max_cost
from tools.try_account.removal import find_stacks, remove
from tools.try_account.template import make_template
from tools.try_account.trial import Trial

OTHER_ACCOUNT = "444455556666"
INTERRUPTED = (
    "CreateBucket",
    "CreateStack",
    "CreateProcessingJob",
    *(
        pytest.param(operation, marks=pytest.mark.more)
        for operation in (
            *("PutObject", "CreateSecret", "DescribeStacks", "CreateQueue", "Subscribe"),
            *("CreateRole", "PutRolePolicy", "DescribeProcessingJob", "Query", "ReceiveMessage"),
            *("ListMetrics", "DescribeAlarms", "GetQueueAttributes"),
        )
    ),
)
"""A call of each step, and those that create something."""


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the template of a try, for moto."""

    def write(folder: Path) -> None:
        text = adapt_to_moto(make_template())
        (folder / "template.json").write_text(text, encoding="utf-8")

    folder = make_once(tmp_path_factory, "try-template", write)
    return (folder / "template.json").read_text(encoding="utf-8")


@pytest.fixture
def world() -> Iterator[TryWorld]:
    """Yields an empty account."""
    with try_world() as empty_world:
        yield empty_world


def rows(text: str) -> dict[str, str]:
    """Returns the marks of a checklist, by check."""
    marks = {}
    for line in text.splitlines():
        for name in EXPECTED:
            if line[:1].strip() and line[13:].startswith(f"{name}  "):
                marks[name] = line[:13].strip()
    return marks


def test_a_try_is_as_expected_and_leaves_nothing(world: TryWorld, template: str) -> None:
    """The list's expectations are what the local AWS does: its handlers, on the real template."""
    text, is_same = world.run(template)
    assert is_same, text
    assert set(rows(text).values()) == {"same"}
    assert "12 of 12 checks are as on the local AWS" in text
    assert f"{NAMES.job} completed: <$0.01" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert world.leftovers() == []


def test_the_sweep_does_not_audit_the_accounts_older_jobs(template: str) -> None:
    """All schedules are off, so a try in a busy account costs no more."""
    resources = json.loads(template)["Resources"].values()
    states = [
        row["Properties"]["State"] for row in resources if row["Type"] == "AWS::Scheduler::Schedule"
    ]
    assert states == ["DISABLED"] * 3


@pytest.mark.parametrize("operation", INTERRUPTED)
def test_ctrl_c_in_any_step_leaves_nothing(world: TryWorld, template: str, operation: str) -> None:
    """The list says what was reached, and that all was removed."""
    world.interrupt_after = operation
    text, is_same = world.run(template)
    assert not is_same
    assert rows(text)["removal"] == "same"
    assert "not reached" in rows(text).values()
    assert "interrupted; wait until all is removed" in world.lines
    assert world.leftovers() == []


@pytest.mark.parametrize(
    ("operation", "check", "others"),
    [
        ("CreateStack", "stack", {"not reached"}),
        ("CreateRole", "job", {"same", "not reached"}),
        pytest.param("Query", "audits stored", {"same", "not reached"}, marks=pytest.mark.more),
        ("DescribeAlarms", "alarms", {"same", "not reached"}),
    ],
)
def test_a_denied_call_is_in_the_list_without_the_accounts_id(
    world: TryWorld, template: str, operation: str, check: str, others: set[str]
) -> None:
    """The steps that do not need it go on, and all is removed."""
    world.denied = operation
    text, _ = world.run(template)
    marks = rows(text)
    assert marks.pop(check) == "DIFFERS"
    assert marks.pop("removal") == "same"
    assert set(marks.values()) == others
    assert f"not authorized to perform: {operation}" in " ".join(text.split())
    assert world.leftovers() == []


def test_an_answer_in_another_form_is_in_the_list(
    world: TryWorld, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real AWS may answer what the simulation does not. The list is still written."""
    answer: dict[str, str] = {}
    monkeypatch.setattr("tools.try_account.resources.create_stack", lambda *_: answer["StackId"])
    text, _ = world.run(template)
    assert (rows(text)["stack"], rows(text)["removal"]) == ("DIFFERS", "same")
    assert "KeyError('StackId')" in text
    assert world.leftovers() == []


def test_a_job_without_capacity_is_audited_too(world: TryWorld, template: str) -> None:
    """It has no bill and no metrics; its audit and its message are still there."""
    world.failure = "CapacityError: Unable to provision requested ML compute capacity."
    text, is_same = world.run(template)
    assert not is_same
    marks = rows(text)
    assert marks["job"] == "DIFFERS"
    assert (marks["audits stored"], marks["messages about the job"]) == ("same", "same")
    assert "Failed: CapacityError" in text
    assert world.leftovers() == []


def test_a_stack_that_is_rolled_back_ends_the_try_with_its_reason(
    world: TryWorld, template: str
) -> None:
    """No job is started."""
    world.rolls_back = True
    text, _ = world.run(template)
    assert "ROLLBACK_COMPLETE" in text
    assert "You have exceeded a limit." in " ".join(text.split())
    assert rows(text)["job"] == "not reached"
    assert world.leftovers() == []


def test_the_fingerprint_key_of_another_deployment_stays(world: TryWorld, template: str) -> None:
    """With another key, that deployment's fingerprints would change."""
    store = world.session.client("secretsmanager")
    tags = [{"Key": TAG, "Value": "SageAudit"}]
    store.create_secret(Name=FINGERPRINT_KEY, SecretString="theirs", Tags=tags)
    world.interrupt_after = "CreateStack"
    world.run(template)
    assert store.get_secret_value(SecretId=FINGERPRINT_KEY)["SecretString"] == "theirs"
    assert world.leftovers() == [FINGERPRINT_KEY]


def test_what_cannot_be_removed_is_named_and_a_later_run_removes_it(
    world: TryWorld, template: str
) -> None:
    """The rest is removed all the same. The later run needs no memory of this one."""
    world.denied = "DeleteBucket"
    world.interrupt_after = "CreateStack"
    text, _ = world.run(template)
    assert rows(text)["removal"] == "DIFFERS"
    assert f"the bucket {NAMES.bucket}: An error occurred (AccessDenied)" in " ".join(text.split())
    cleanup = f'`make try ARGS="--cleanup --region {REGION}"` removes the rest'
    assert cleanup in world.lines
    assert world.leftovers() == [NAMES.bucket]
    world.denied = ""
    assert find_stacks(world.account) == ([NAMES.stack], [])
    assert remove(world.account, NAMES.stack) == []
    assert find_stacks(world.account) == ([], [])


def test_the_list_names_neither_the_account_nor_a_person(world: TryWorld) -> None:
    """AWS's errors name both."""
    caller = f"User: arn:aws:sts::{ACCOUNT}:assumed-role/Admin/jane is not authorized"
    account = Account(
        None, OTHER_ACCOUNT, REGION, now=world.clock.now, sleep=world.sleep, say=world.lines.append
    )
    text = account.without_id(caller.replace(ACCOUNT, OTHER_ACCOUNT))
    assert text == "User: arn:aws:sts::111122223333:assumed-role/NAME is not authorized"


def test_only_resources_of_tries_are_found(world: TryWorld) -> None:
    """A bucket of another region belongs to a try there, which may still run."""
    s3 = world.session.client("s3")
    for name in ("our-data", "sageaudit-reports", make_names(NAMES.stack, "eu-west-1").bucket):
        s3.create_bucket(Bucket=name)
    assert find_stacks(world.account) == ([], [])
    assert stack_name("SageAudit") is None
    assert stack_name("sageaudittry-0123abcd-us-east-1") == NAMES.stack


def test_what_appears_after_it_was_looked_for_is_removed_too(
    world: TryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C may cut off a request that AWS still carries out, such as CreateStack."""
    found = iter([[], ["late"], ["late"], [], []])
    deleted: list[str] = []
    kind = removal.Kind("the stack", lambda *_: next(found), lambda _, name: deleted.append(name))
    monkeypatch.setattr(removal, "_KINDS", (kind,))
    assert remove(world.account, NAMES.stack) == []
    assert deleted == ["late"]


def test_a_list_that_is_denied_is_said(world: TryWorld) -> None:
    """Something may be left that nobody could see."""
    world.denied = "ListRoles"
    [error] = remove(world.account, NAMES.stack)
    assert error.startswith("the role: An error occurred (AccessDenied)")


@pytest.fixture
def offline_account() -> Iterator[Account]:
    """Yields an account whose price list is denied."""
    with mock_aws():
        session: Any = boto3.Session(region_name=REGION)
        refuse_prices(RequestRouter(session))
        yield Account(
            session, ACCOUNT, REGION, now=lambda: START, sleep=lambda _: None, say=lambda _: None
        )


def test_the_most_that_it_costs_is_said_before(offline_account: Account) -> None:
    """By hand: 15 minutes at $0.04992 an hour, two hours of the stack, and its requests."""
    cost = max_cost(offline_account)
    stack = (Decimal("0.10") * 34 + 3 + Decimal("0.40") + Decimal("0.30") * 4) * 2 / 720
    exact = Decimal("0.04992") / 4 + stack + Decimal("0.002")
    assert exact <= cost.max_usd < exact + Decimal("0.01")
    assert cost.max_usd <= MAX_USD


def test_a_region_without_a_price_or_an_image_is_refused(offline_account: Account) -> None:
    """Nothing is created at an unknown price."""
    elsewhere = Account(
        offline_account.session, ACCOUNT, "eu-west-1",
        offline_account.now, offline_account.sleep, offline_account.say,
    )  # fmt: skip
    with pytest.raises(CannotTry, match=r"no price of ml\.t3\.medium in eu-west-1 is known"):
        max_cost(elsewhere)
    with pytest.raises(CannotTry, match="not known in ap-east-2"):
        image_uri("ap-east-2")
    assert image_uri("eu-west-1").startswith("141502667606.dkr.ecr.eu-west-1.amazonaws.com/")


def test_nothing_is_created_before_the_user_agrees() -> None:
    """The question has the account, the region, the cost and what is created."""
    with mock_aws():
        done = CliRunner().invoke(command.main, ["--region", REGION], input="n\n")
        assert done.exit_code == 1
        assert f"Account {ACCOUNT}, region {REGION}" in done.output
        assert "costs at most $0.0" in done.output
        assert "Try it in this account? [y/N]: n" in done.output
        assert boto3.client("s3").list_buckets()["Buckets"] == []
        done = CliRunner().invoke(command.main, ["--region", REGION, "--cleanup"])
        assert (done.exit_code, done.output.splitlines()[1:]) == (
            0,
            ["Nothing is left of earlier tries."],
        )


def test_the_list_is_written_without_the_accounts_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of AWS usually names the account. The exit code says that something differs. The
    list is printed even if the file cannot be written.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_zip_asset", lambda: b"")
    monkeypatch.setattr(command, "_make_template", lambda: "")
    monkeypatch.setattr(command, "new_names", lambda _: NAMES)
    denied = Check("stack", f"denied in {OTHER_ACCOUNT}")
    monkeypatch.setattr(Trial, "run", lambda trial: trial.checks.append(denied))
    monkeypatch.setenv("MOTO_ACCOUNT_ID", OTHER_ACCOUNT)
    with mock_aws():
        done = CliRunner().invoke(command.main, ["--region", REGION, "--yes"])
        assert boto3.client("s3").list_buckets()["Buckets"] == []
        path = tmp_path / f"{NAMES.stack}.txt"
        text = path.read_text(encoding="utf-8")
        path.unlink()
        path.mkdir()
        unwritable = CliRunner().invoke(command.main, ["--region", REGION, "--yes"])
    assert (done.exit_code, text in done.output) == (1, True), done.output
    assert text in unwritable.output
    assert f"{path.name} cannot be written" in unwritable.output
    assert rows(text)["stack"] == "DIFFERS"
    assert OTHER_ACCOUNT not in text
    assert 'with the issue form "A first real account"' in done.output
    assert max(map(len, done.output.splitlines())) <= 80


def test_an_interrupted_removal_names_the_command_with_profile_and_region(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without them, the command would look in the default account and find nothing."""
    config = tmp_path / "config"
    keys = "aws_access_key_id = a\naws_secret_access_key = b\n"
    config.write_text(f'[profile "sand box"]\n{keys}', encoding="utf-8")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))

    def interrupt(_: Account) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "find_stacks", interrupt)
    with mock_aws():
        options = ["--profile", "sand box", "--region", REGION, "--cleanup"]
        done = CliRunner().invoke(command.main, options)
    again = f"""make try ARGS="--cleanup --profile 'sand box' --region {REGION}\""""
    assert f"interrupted before all was removed: `{again}` removes the rest" in done.output


def test_the_list_fits_a_terminal_and_shows_what_was_expected() -> None:
    """Long texts of AWS are wrapped."""
    checks = [Check("stack", "CREATE_FAILED: " + "word " * 30), Check("job", None)]
    text = checklist_text("a title", checks, [Fact("stack", "took long")])
    assert max(map(len, text.splitlines())) <= 80
    assert "expected: CREATE_COMPLETE" in text
    assert "0 of 2 checks" in text
    assert "not reached  job                     Completed" in text
