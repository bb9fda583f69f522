"""`sageaudit notify` shows what the deployed functions would send."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import boto3
import pytest
from moto import mock_aws

from local.slack import Answer, FakeSlack, slack_stand_in
from sageaudit.adapters.channels.services import TeamsChannel
from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli import clock
from sageaudit.cli.commands import notify
from sageaudit.domain.alert.audit_figures import AlertFigures
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.bill.finding import Severity
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.command_line import Run
from tests.fakes.entries import record_run
from tests.fakes.messages import alert

RECORDINGS = Path(__file__).parents[2] / "local" / "recordings"
COMPOSED = RECORDINGS / "composed-g4dn-12xlarge.json"
NAME = "tile-classifier-2026-06-09-08-02-11-408"
TITLE = "tile-classifier wasted about $10 in 1 run: use 1 x ml.g4dn.2xlarge"
ARN = f"arn:aws:sagemaker:us-east-1:111122223333:training-job/{NAME}"
KEY = JobKey(ARN, datetime(2026, 6, 9, 8, 2, 11, tzinfo=UTC))
WEBHOOK = "https://hooks.slack.com/services/T00000000/B00000000/local"


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSlack]:
    """Yields an account with the webhook's secret and a topic, and a Slack server on the loopback
    address.
    """
    with mock_aws(), slack_stand_in() as stand_in:
        session = boto3.Session(region_name="us-east-1")
        session.client("secretsmanager").create_secret(Name="webhook", SecretString=WEBHOOK)
        workflow = TeamsChannel.secret_format.example
        session.client("secretsmanager").create_secret(Name="workflow", SecretString=workflow)
        session.client("sns").create_topic(Name="notices")
        monkeypatch.setattr(notify, "open_session", lambda *_: session)
        monkeypatch.setattr(notify, "https_post", stand_in.transport)
        yield stand_in


@pytest.mark.parametrize(
    ("channel", "first", "last"),
    [
        ("slack", f"*{TITLE}*", "*Snooze 30 days*: `sageaudit advice snooze vexhzxcl`"),
        ("email", f"Subject: {TITLE}", "https://us-east-1.console.aws.amazon.com/sagemaker/home"),
        ("teams", TITLE, "[Job]  [Metrics]  [Logs]"),
    ],
)
def test_a_recording_shows_its_message_and_why(
    channel: str, first: str, last: str, run: Run
) -> None:
    """It is printed as text; a link is its label."""
    done = run("notify", "--recording", COMPOSED, "--channel", channel)
    lines = done.stdout.splitlines()
    assert (done.exit_code, lines[0]) == (0, first)
    assert lines[-1].startswith(last)
    assert "a message: first, 1 run of its family counts" in done.stderr


def test_a_job_of_a_history_is_decided_about_with_its_family(tmp_path: Path, run: Run) -> None:
    """Nothing is written to the file."""
    path = tmp_path / "history.db"
    run("audit", "--recording", COMPOSED, "--history", path)
    before = path.read_bytes()
    done = run("notify", "--preview", NAME, "--history", path, "--raw")
    output = done.document()
    assert output["text"] == TITLE
    assert f"sageaudit advice snooze vexhzxcl --history {path}" in str(output["blocks"])
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("recording", "policy", "reason"),
    [
        ("training-020-c4-8xlarge-x2-failed.json", "", "below the $5.00 floor"),
        ("training-048-g4dn-xlarge-completed.json", "", "no finding worth a message"),
        ("composed-g4dn-12xlarge.json", 'mode = "observe"', "observe mode"),
    ],
)
def test_it_says_why_no_message_is_due(
    recording: str, policy: str, reason: str, tmp_path: Path, run: Run
) -> None:
    """It also sends none."""
    (tmp_path / "policy.toml").write_text(policy)
    words = ("--policy", tmp_path / "policy.toml", "--send")
    done = run("notify", "--recording", RECORDINGS / recording, *words)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "no message: " in done.stderr
    assert reason in done.stderr


POLICY = """
[channels.ml]
service = "slack"
secret = "webhook"
[channels.research]
service = "teams"
secret = "workflow"
[channels.data]
service = "sns"
topic_arn = "arn:aws:sns:us-east-1:111122223333:notices"
[[route]]
owner = "mara"
to = ["ml", "research"]
[[route]]
owner = "ben"
to = ["data"]
"""


@pytest.mark.parametrize(
    ("policy", "channel", "message"),
    [
        (POLICY, "ml", "it goes to ml, research, by route 1 (owner mara)\n"),
        (POLICY, "data", "it goes to ml, research, by route 1 (owner mara); not to data\n"),
        (POLICY, "slack", "it goes to ml, research, by route 1 (owner mara)\n"),
        (
            POLICY.replace("mara", "ana"),
            "ml",
            "it goes to the default (sns): no route matches; not to ml\n",
        ),
        ("", "sns", "it goes to the default (sns): the policy has no routes\n"),
    ],
)
def test_it_says_by_which_route_a_message_goes(
    policy: str, channel: str, message: str, tmp_path: Path, run: Run
) -> None:
    """It names the routes or the default, and says if the chosen channel would get none."""
    (tmp_path / "policy.toml").write_text(policy)
    words = ("--recording", COMPOSED, "--policy", tmp_path / "policy.toml")
    done = run("notify", *words, "--channel", channel)
    assert done.exit_code == 0
    assert done.stderr.endswith(message)


LINES = POLICY.replace('secret = "webhook"', 'secret = "webhook"\nevery_job = true')


@pytest.mark.parametrize(
    ("recording", "owner", "channel", "first", "goes_to"),
    [
        ("composed-g4dn-12xlarge.json", "ana", "ml", f"*{NAME} completed: $14.67, $10.38", "ml"),
        ("composed-g4dn-12xlarge.json", "ana", "email", f"Subject: {TITLE}", "ml"),
        ("composed-g4dn-12xlarge.json", "mara", "ml", f"*{TITLE}*", None),
        ("training-048-g4dn-xlarge-completed.json", "ana", "ml", "*", "ml"),
    ],
)
def test_a_channel_with_a_line_about_each_job_shows_it(
    recording: str,
    owner: str,
    channel: str,
    first: str,
    goes_to: str | None,
    tmp_path: Path,
    run: Run,
) -> None:
    """If the channel gets an alert about the job, the alert replaces the line."""
    (tmp_path / "policy.toml").write_text(LINES.replace("mara", owner))
    words = ("--policy", tmp_path / "policy.toml", "--channel", channel)
    done = run("notify", "--recording", RECORDINGS / recording, *words)
    assert (done.exit_code, done.stdout.startswith(first)) == (0, True), done.stderr
    assert ("the line about each job goes to" in done.stderr) == (goes_to is not None)
    if goes_to:
        assert f"the line about each job goes to {goes_to}\n" in done.stderr


def test_it_sends_one_message_and_prints_the_result(
    slack: FakeSlack, run: Run, tmp_path: Path
) -> None:
    """The address is that of the policy or of --to."""
    (tmp_path / "policy.toml").write_text(POLICY)
    words = ("notify", "--recording", str(COMPOSED), "--send", "--policy", tmp_path / "policy.toml")
    assert "sent to ml at webhook" in run(*words, "--channel", "ml").stderr
    assert "sent to slack" in run(*words, "--to", "webhook").stderr
    assert "sent to research" in run(*words, "--channel", "research").stderr
    assert (
        "sent to data at arn:aws:sns:us-east-1:111122223333:notices"
        in run(*words, "--channel", "data").stderr
    )
    slack.queue_answers(Answer(403, "invalid_token"))
    done = run(*words, "--channel", "ml")
    assert (done.exit_code, done.stderr.strip().splitlines()[-1]) == (
        1,
        "sageaudit: ml: 403 invalid_token: the webhook is revoked or not permitted",
    )
    assert [post["text"] for post in slack.posts] == [TITLE] * 2
    assert len(slack.accepted) == 3


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "name one job with --preview, or one file with --recording"),
        (("--recording", COMPOSED, "--send"), "there is no address: give --to"),
        (("--recording", COMPOSED, "--channel", "teems"), "did you mean teams?"),
        (("--preview",), "name one job with --preview"),
        (
            ("--digest", "--preview", "my-job"),
            "--digest is about a week: leave out the job and the file",
        ),
        (("--recording", RECORDINGS / "tuning-set-bayesian-221019-1807.json"), "the job's ARN"),
    ],
)
def test_missing_input_is_reported(words: tuple[str, ...], reason: str, run: Run) -> None:
    """Nothing is sent."""
    done = run("notify", *words)
    assert done.exit_code == 2
    assert reason in done.stderr


def test_a_message_that_a_table_has_is_not_due_again(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger of the table is read, and not changed."""
    figures = AlertFigures(Severity.LOW, Decimal("10.38"), Decimal(0))
    sent = alert(figures, at=datetime(2026, 6, 9, 12, tzinfo=UTC))
    with dynamodb() as client:
        name = new_table(client)
        parts = DynamoHistory(client, name), DynamoHistory(client, name)
        session = SimpleNamespace(client=lambda *_, **__: client, region_name="us-east-1")
        monkeypatch.setattr(histories, "_open_table", lambda *_: (session, *parts))
        words = ("notify", "--recording", str(COMPOSED), "--table", name)
        assert "a message: first" in run(*words).stderr
        assert client.scan(TableName=name)["Count"] == 0
        ledger = DynamoAlertLedger(client, name)
        past = ledger.past_alerts(KEY, "111122223333/us-east-1/none")
        assert ledger.write_alert(past, past.with_alerts(sent, []), {}, sent.at)
        assert "no message: version 1 was sent" in run(*words).stderr


@pytest.fixture
def week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a history whose last week had one run of ana."""
    monkeypatch.setattr(clock, "utc_now", lambda: datetime(2026, 11, 23, 8, tzinfo=UTC))
    path = tmp_path / "week.db"
    with SqliteHistory(path) as history:
        record_run(
            history, "ranker", datetime(2026, 11, 20, 12, tzinfo=UTC), cost_usd=10, avoidable_usd=4
        )
    return path


ROUTED = """
[channels.ml]
service = "slack"
[channels.of-ana]
service = "teams"
[[route]]
owner = "ana"
to = ["of-ana"]
[[route]]
tag = "team=x"
to = ["of-ana"]
"""


@pytest.mark.parametrize(
    ("policy", "channel", "first", "message"),
    [
        pytest.param(
            "",
            "email",
            "Subject: Week to 2026-11-22: $10.00, $4.00 of it avoidable",
            "the week to 2026-11-22: sent on monday at 8:00 UTC",
            id="as an e-mail",
        ),
        pytest.param(
            "",
            "slack",
            "*Week to 2026-11-22: $10.00, $4.00 of it avoidable*",
            "all jobs: to sns",
            id="in Slack",
        ),
        pytest.param(
            "",
            "teams",
            "Week to 2026-11-22: $10.00, $4.00 of it avoidable",
            "all jobs: to sns",
            id="in Teams",
        ),
        pytest.param(
            ROUTED,
            "ml",
            "*Week to 2026-11-22: $10.00, $4.00 of it avoidable*",
            "route owner ana: to of-ana",
            id="to a route by owner",
        ),
        pytest.param(
            ROUTED,
            "of-ana",
            "Week to 2026-11-22: $10.00, $4.00 of it avoidable",
            "route tag team=x: no digest, as tags.show lacks its tag",
            id="to a route by a tag that no sum has",
        ),
        pytest.param(
            'mode = "observe"', "slack", None, "no digest: observe mode", id="in observe mode"
        ),
        pytest.param(
            '[digest]\nday = "off"',
            "slack",
            None,
            "no digest: the policy has switched it off",
            id="with the digest switched off",
        ),
    ],
)
def test_the_digest_is_shown_as_a_channel_gets_it(
    policy: str, channel: str, first: str | None, message: str, week: Path, run: Run
) -> None:
    """It prints when and to whom the digest is sent, or why there is none."""
    (week.parent / "policy.toml").write_text(policy)
    words = ("--history", week, "--policy", week.parent / "policy.toml", "--channel", channel)
    done = run("notify", "--digest", "--preview", *words)
    assert (done.exit_code, [*done.stdout.splitlines(), None][0]) == (0, first), done.stderr
    assert message in done.stderr
    assert ("Filter: owner ana" in done.stdout) == (channel == "of-ana")


def test_the_digest_is_sent_once_and_not_written(slack: FakeSlack, week: Path, run: Run) -> None:
    """It is sent to one address."""
    before = week.read_bytes()
    words = ("--history", week, "--channel", "slack", "--send", "--to", "webhook")
    assert "sent to slack" in run("notify", "--digest", *words).stderr
    assert [post["text"].partition(":")[0] for post in slack.posts] == ["Week to 2026-11-22"]
    assert week.read_bytes() == before
