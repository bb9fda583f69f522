"""SQS batch of ended jobs -> audits in the history.

Each message is one EventBridge event:

    {"source": "aws.sagemaker", "detail-type": "SageMaker Training Job State Change",
     "detail": {"TrainingJobName": "...", "TrainingJobArn": "...",
                "TrainingJobStatus": "Completed"}}

A message that is no ended job of an allowed account goes to the dead-letter queue with its reason;
one that comes too early is sent again with a delay; what fails is reported and comes back.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from aws_lambda_powertools import Logger

from sageaudit import flow
from sageaudit.adapters.aws.accounts import Accounts
from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.aws.cloudwatch import CloudWatchMetrics
from sageaudit.adapters.aws.sagemaker import SageMakerJobs
from sageaudit.adapters.aws.secrets import SecretReader
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.dynamo.history import DynamoHistory
from sageaudit.adapters.files import policy_file
from sageaudit.adapters.lambda_runtime.batch import MESSAGES, Batch, Handler, Record
from sageaudit.adapters.lambda_runtime.counts import Counts
from sageaudit.adapters.prices import packaged
from sageaudit.adapters.prices.price_cache import PriceCache
from sageaudit.adapters.prices.price_list import PriceList
from sageaudit.adapters.prices.sources import live_markets
from sageaudit.domain.audit.record import Verdict
from sageaudit.domain.job.event import JobEnded, job_ended
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import AwsError, BadSettings, RejectedEvent
from sageaudit.rules import catalogue
from sageaudit.rules.judge import RULE_FAILED
from sageaudit.settings import AuditSettings
from sageaudit.text import untrusted

_STOP_BEFORE_MS = 20_000
"""What is left of the function's time when no further record is begun."""
_POLICY = Path(__file__).parent.parent / "policy.toml"


class AuditBatch:
    """One Lambda's wiring: audits each record of a batch on its own."""

    def __init__(
        self,
        deps: flow.AuditDependencies,
        settings: AuditSettings,
        *,
        queue: SqsQueue,
        dead_letters: SqsQueue,
        clock: Callable[[], datetime],
        logger: Logger,
        counts: Counts,
    ) -> None:
        self._deps = deps
        self._settings = settings
        self._queue = queue
        self._dead_letters = dead_letters
        self._clock = clock
        self._logger = logger
        self._counts = counts
        self._batch = Batch(
            MESSAGES,
            task="audit",
            failed="AuditFailed",
            stop_before_ms=_STOP_BEFORE_MS,
            logger=logger,
            counts=counts,
        )

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Answers which records failed; the others are done."""
        return self._batch.run(event, context, self._one)

    def _one(self, record: Record) -> bool:
        allowed = {self._settings.account_id, *self._deps.policy.accounts}
        try:
            ended = job_ended(record["body"], accounts=allowed, region=self._settings.region)
        except RejectedEvent as rejected:
            return self._reject(record, rejected)
        attempt = _attempt(record)
        outcome = flow.audit_finished_job(ended, self._deps, now=self._clock(), attempt=attempt)
        if isinstance(outcome, flow.Later):
            self._queue.send(
                record["body"],
                delay_s=outcome.delay_s,
                attributes={"attempt": str(attempt + 1)},
            )
            job = {"job": ended.ref.arn, "attempt": attempt}
            self._logger.info("later", extra={**job, "reason": outcome.reason})
        else:
            self._say(ended, outcome)
        return True

    def _say(self, ended: JobEnded, done: flow.Done) -> None:
        recorded, document = done.recorded, done.document
        new = recorded.verdict is Verdict.RECORDED
        self._counts.add("JobsAudited" if new else "DuplicateEvents")
        for _ in (one for one in document["unknown"] if one["code"] == RULE_FAILED):
            self._counts.add("RuleFailed")
        if document["unauditable"] is not None:
            self._counts.add("JobsUnauditable")
        self._logger.info(
            "audited" if new else "already audited",
            extra={
                "job": ended.ref.arn,
                "verdict": recorded.verdict.value,
                "version": recorded.version,
                "total_usd": document["bill"]["total_usd"],
                "avoidable_usd": document["avoidable_usd"],
                "lost_usd": document["lost_usd"],
                "rules": [finding["rule"] for finding in document["findings"]],
                "unauditable": document["unauditable"],
            },
        )

    def _reject(self, record: Record, rejected: RejectedEvent) -> bool:
        """Straight to the dead-letter queue: a second try would find the same."""
        self._dead_letters.send(
            record["body"],
            attributes={"reason": rejected.code, "why": str(rejected)},
        )
        self._counts.add("RejectedEvents")
        self._batch.note("event rejected", record, rejected.code, str(rejected))
        return True


def _attempt(record: Mapping[str, Any]) -> int:
    """How often the flow has seen this event, from 1."""
    value = record.get("messageAttributes", {}).get("attempt", {}).get("stringValue", "1")
    return max(int(value), 1) if value.isdecimal() else 1


def build(
    environ: Mapping[str, str],
    *,
    session: Any = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    policy: Policy | None = None,
) -> Handler:
    """Wires the Lambda. Raises BadSettings or BadPolicy when it cannot work."""
    settings = AuditSettings.from_env(environ)
    session = session or boto3.Session()
    policy = policy or policy_file.load(_POLICY)
    accounts = Accounts(session, settings.account_id, policy.accounts, time.time)
    sqs, dynamodb = client(session, "sqs"), client(session, "dynamodb")
    logger = Logger(service=environ.get("POWERTOOLS_SERVICE_NAME", "audit"))
    deps = flow.AuditDependencies(
        jobs=SageMakerJobs(accounts.of("sagemaker")),
        metrics=CloudWatchMetrics(accounts.of("cloudwatch"), packaged.types()),
        history=DynamoHistory(dynamodb, settings.table_name),
        markets=live_markets(
            PriceList(lambda endpoint: accounts.of("pricing")(settings.account_id, endpoint)),
            PriceCache(dynamodb, settings.table_name),
            clock,
        ),
        policy=policy,
        ruleset=catalogue.ruleset(),
        fingerprint_key=_fingerprint_key(settings, session, logger),
    )
    return AuditBatch(
        deps,
        settings,
        queue=SqsQueue(sqs, settings.finished_queue_url),
        dead_letters=SqsQueue(sqs, settings.finished_dlq_url),
        clock=clock,
        logger=logger,
        counts=Counts(environ),
    )


def _fingerprint_key(
    settings: AuditSettings, session: Any, logger: Logger
) -> Callable[[], bytes | None]:
    """The key when it is asked for; a job without fingerprint is better than no audit."""
    if settings.fingerprint_secret_id is None:
        return lambda: None
    secret = SecretReader(
        client(session, "secretsmanager"), settings.fingerprint_secret_id, time.monotonic
    )

    def key() -> bytes | None:
        try:
            return secret.value().encode()
        except (AwsError, BadSettings) as error:
            logger.warning("no fingerprint", extra={"reason": untrusted.log(str(error))})
            return None

    return key


@cache
def _built() -> Handler:
    return build(os.environ)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda's entry point: wired once for each execution environment."""
    return _built()(event, context)
