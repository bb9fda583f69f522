"""Every request of one audit, from its event to the message: none is added unseen."""

from sageaudit.domain.job.kinds import JobKind
from tools.bench.deployed import counts

LISTS = {f"sagemaker.{kind.spec.list_call}": 1 for kind in JobKind}
REQUESTS = {
    "audit": {
        "sagemaker.DescribeTrainingJob": 1,
        "cloudwatch.GetMetricData": 1,
        # once in a process: its secret, and the day's prices by the table or the price list
        "secrets-manager.GetSecretValue": 1,
        "pricing.GetProducts": 1,
        # the price cache; HEAD before the job is read and before it is written; the family's row
        "dynamodb.GetItem": 4,
        # the family's earlier runs; those on both sides of it after it was written
        "dynamodb.Query": 3,
        # once in a process: the account of the month
        "dynamodb.PutItem": 1,
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
    """Of a one-host GPU job whose event has tags; the functions have just started."""
    audit, after, nothing = counts()
    expected = {
        name: requests | {"invocations": INVOCATIONS[name]} for name, requests in REQUESTS.items()
    }
    assert audit.calls == {
        (service, name): n for service, names in expected.items() for name, n in names.items()
    }
    assert audit.used["metrics requested"] == 5
    assert audit.used["SQS requests"] == 6
    assert audit.used["write units"] <= 70
    swept = {
        # whether the installation is recorded
        "dynamodb.GetItem": 1,
        # members, states of all lists, due runs of each shard
        "dynamodb.Query": 6,
        # the lease, its release, and the state of all lists of one account and region
        "dynamodb.PutItem": 3,
        "invocations": 1,
    }
    watched = {"dynamodb.Query": 2, "invocations": 1}
    assert nothing.calls == {
        **{("sweep", name): n for name, n in (swept | LISTS).items()},
        **{("watch", name): n for name, n in watched.items()},
    }
    assert after.calls - nothing.calls == {("sweep", "dynamodb.GetItem"): 1}
