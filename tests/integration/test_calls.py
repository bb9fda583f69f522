"""Every request of one audit, from its event to the message: none is added unseen."""

from sageaudit.domain.job.kinds import JobKind
from tools.bench.deployed import counts

LISTS = {f"sagemaker.{kind.spec.list_call}": 1 for kind in JobKind}
REQUESTS = {
    "audit": {
        "sagemaker.DescribeTrainingJob": 1,
        "cloudwatch.GetMetricData": 1,
        # once in a process: its secret
        "secrets-manager.GetSecretValue": 1,
        # once a day: two pages of prices, and those of storage
        "pricing.GetProducts": 3,
        # once in a process: the price cache; HEAD before the job is read and before it is written
        "dynamodb.GetItem": 3,
        # the family's earlier runs; after it was written its own row with the later ones, and the
        # earlier ones
        "dynamodb.Query": 3,
        # once a day: the price cache; once in a process: the account of the month
        "dynamodb.PutItem": 2,
        "dynamodb.TransactWriteItems": 1,
    },
    "notify": {
        # HEAD, alerts of run and family, the installation (once in a process), the channel's hour
        "dynamodb.GetItem": 5,
        # the family's runs, and what people decided
        "dynamodb.Query": 2,
        "dynamodb.TransactWriteItems": 1,
        "sqs.SendMessage": 1,
    },
    "deliver": {
        # how the channel answered; the lease; the mark
        "dynamodb.GetItem": 1,
        "secrets-manager.GetSecretValue": 1,
        "dynamodb.PutItem": 1,
        "dynamodb.UpdateItem": 1,
    },
}
INVOCATIONS = {"audit": 1, "notify": 2, "deliver": 1}
"""Of notify one for the audit, one for the notice."""


def test_an_audit_makes_these_requests_and_no_other() -> None:
    """Of a one-host GPU job whose event has tags, the day's first; the functions have just
    started.
    """
    counted = counts()
    audit, after, nothing = counted.audit, counted.after, counted.nothing
    expected = {
        name: requests | {"invocations": INVOCATIONS[name]} for name, requests in REQUESTS.items()
    }
    assert audit.calls == {
        (service, name): n for service, names in expected.items() for name, n in names.items()
    }
    assert audit.used["metrics requested"] == 5
    assert audit.used["SQS requests"] == 6
    swept = {
        # the installation
        "dynamodb.GetItem": 1,
        # the members, the lists of all accounts, the due audits in four shards
        "dynamodb.Query": 6,
        # the lease twice, and the lists of the one account
        "dynamodb.PutItem": 3,
        "invocations": 1,
    }
    watched = {"dynamodb.Query": 2, "invocations": 1}
    assert nothing.calls == {("sweep", name): n for name, n in (swept | LISTS).items()} | {
        ("watch", name): n for name, n in watched.items()
    }
    assert after.calls - nothing.calls == {("sweep", "dynamodb.GetItem"): 3}  # three jobs


def test_a_function_that_runs_already_reads_no_prices_secrets_or_installation_again() -> None:
    """Nor does it name the account of the month again. A new function reads the table's prices."""
    counted = counts()
    day_first, cold, warm = counted.audit.calls, counted.cold.calls, counted.warm.calls
    assert day_first - cold == {
        ("audit", "pricing.GetProducts"): 3,
        ("audit", "dynamodb.PutItem"): 1,
    }
    assert cold - warm == {
        ("audit", "secrets-manager.GetSecretValue"): 1,
        ("audit", "dynamodb.GetItem"): 1,
        ("audit", "dynamodb.PutItem"): 1,
        ("notify", "dynamodb.GetItem"): 1,
        ("deliver", "secrets-manager.GetSecretValue"): 1,
    }
    assert cold - day_first == warm - cold == {}
    assert warm["audit", "dynamodb.GetItem"] == 2
    assert counted.warm.used["write units"] <= 69


def test_an_event_that_comes_again_or_waits_makes_few_requests() -> None:
    """A second event reads the job and its summary. One that waits reads the metrics too."""
    counted = counts()
    assert counted.duplicate.calls == {
        ("audit", "sagemaker.DescribeTrainingJob"): 1,
        ("audit", "dynamodb.GetItem"): 1,
        ("audit", "invocations"): 1,
    }
    assert counted.waiting.used["metrics requested"] == 5
    assert counted.waiting.calls["audit", "dynamodb.TransactWriteItems"] == 0
    assert counted.heartbeat.calls == {
        ("audit", "dynamodb.UpdateItem"): 1,
        ("audit", "invocations"): 1,
    }


def test_metrics_of_a_running_job_are_requested_from_its_45th_minute_on() -> None:
    """In its first hour once: CPU and GPU of four hosts."""
    watched = counts().watched
    assert watched.calls["watch", "cloudwatch.GetMetricData"] == 1
    assert watched.used["metrics requested"] == 8
