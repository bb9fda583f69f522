"""An entry point's environment: complete, or the variable that is not is named."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sageaudit.adapters.lambda_runtime.settings import (
    AuditSettings,
    DeliverSettings,
    DigestSettings,
    NotifySettings,
    SweepSettings,
)
from sageaudit.errors import BadSettings

AUDIT = {
    "TABLE_NAME": "history",
    "FINISHED_QUEUE_URL": "https://queue",
    "FINISHED_DLQ_URL": "https://dlq",
    "ACCOUNT_ID": "111122223333",
    "AWS_REGION": "us-east-1",
}
NOTIFY = {
    "TABLE_NAME": "history",
    "AWS_REGION": "us-east-1",
    "DECISIONS_QUEUE_URL": "https://decisions",
    "UNDECIDED_QUEUE_URL": "https://undecided",
    "NOTICES_QUEUE_URL_SNS": "https://sns",
    "NOTICES_QUEUE_URL_SLACK": "https://slack",
    "CHANNELS": "sns,slack",
}
SWEEP = {name: value for name, value in AUDIT.items() if name != "FINISHED_DLQ_URL"}
DELIVER = {
    "TABLE_NAME": "history",
    "AWS_REGION": "us-east-1",
    "CHANNELS": "sns",
    "NOTICES_QUEUE_URL_SNS": "https://sns",
    "NOTICES_DLQ_URL": "https://dlq",
    "TOPIC_ARN": "arn:aws:sns:us-east-1:111122223333:notices",
}
ALL: list[tuple[Callable[[Mapping[str, str]], Any], dict[str, str]]] = [
    (AuditSettings.from_env, AUDIT),
    (NotifySettings.from_env, NOTIFY),
    (DeliverSettings.from_env, DELIVER),
    (SweepSettings.from_env, SWEEP),
]


@pytest.mark.parametrize(("read", "environ"), ALL)
def test_each_variable_that_is_missing_or_empty_is_named(
    read: Callable[[Mapping[str, str]], Any], environ: dict[str, str]
) -> None:
    """One at a time."""
    read(environ)
    for name in environ:
        for broken in ({k: v for k, v in environ.items() if k != name}, {**environ, name: " "}):
            with pytest.raises(BadSettings, match=name):
                read(broken)


def test_the_key_of_reports_is_optional() -> None:
    """Without it, S3's own key encrypts them."""
    variables = {"TABLE_NAME": "t", "ACCOUNT_ID": "111122223333", "AWS_REGION": "us-east-1"}
    assert DigestSettings.from_env(variables).report_key_arn is None
    assert DigestSettings.from_env({**variables, "REPORT_KEY_ARN": "k"}).report_key_arn == "k"


def test_an_account_has_12_digits_and_the_fingerprint_secret_is_optional() -> None:
    """Nothing else is compared with an event's account."""
    assert AuditSettings.from_env(AUDIT).fingerprint_secret_id is None
    assert AuditSettings.from_env({**AUDIT, "FINGERPRINT_SECRET_ID": "k"}).fingerprint_secret_id
    with pytest.raises(BadSettings, match="ACCOUNT_ID"):
        AuditSettings.from_env({**AUDIT, "ACCOUNT_ID": "1"})


@pytest.mark.parametrize(
    ("text", "channels"),
    [("sns", ("sns",)), ("sns, slack", ("sns", "slack")), ("slack,sns,slack", ("slack", "sns"))],
)
def test_each_channel_has_its_queue_once(text: str, channels: tuple[str, ...]) -> None:
    """In the order given."""
    urls = NotifySettings.from_env({**NOTIFY, "CHANNELS": text}).notices_queue_urls
    assert list(urls.items()) == [(name, f"https://{name}") for name in channels]
