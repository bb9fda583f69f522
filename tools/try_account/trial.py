"""The steps of a try: each does something in the account, and adds rows to the checklist."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from infra.names import NOTICES_TOPIC
from sageaudit.adapters.history.dynamo import keys
from sageaudit.domain.audit.summary import JobKey
from tools.try_account import resources
from tools.try_account.account import Account, Names
from tools.try_account.checklist import EXPECTED, Check, Fact
from tools.try_account.removal import AWS_ERRORS, error_text
from tools.try_account.resources import Package

_STACK_LIMIT_S = 1800
_JOB_LIMIT_S = 1800
_AUDIT_LIMIT_S = 1200
_MESSAGE_LIMIT_S = 600
_METRICS_LIMIT_S = 900
"""ListMetrics shows a new metric after up to 15 minutes."""
_ROLE_LIMIT_S = 180
"""IAM's roles can be used some seconds after they are created."""
_EVERY_S = 15
_JOB_NAMESPACE = "/aws/sagemaker/ProcessingJobs"
_BILL_TOLERANCE_USD = Decimal("0.001")
"""The most by which the bill may differ: the volume of 1 GB, which the rate does not include."""


class TryEnded(Exception):
    """Raised if later steps cannot succeed."""


class Trial:
    """One try. `checks` and `facts` grow while it runs."""

    def __init__(self, account: Account, names: Names, package: Package) -> None:
        self.checks: list[Check] = []
        self.facts: list[Fact] = []
        self._account, self._names, self._package = account, names, package
        self._outputs: dict[str, str] = {}
        self._job: dict[str, Any] = {}
        self._queue_url = ""
        self._head: dict[str, Any] = {}

    def run(self) -> None:
        """Runs all steps. An error or an odd answer of AWS is what was seen, and ends its step.

        The steps after the job's end do not need each other. KeyboardInterrupt passes through;
        `checks` then has the rows up to there.
        """
        steps: Mapping[str, Callable[[], Iterator[Check]]] = {
            "stack": self._deploy,
            "job": self._run_job,
            "audits stored": self._read_audit,
            "messages about the job": self._receive,
            "job's metrics": self._read_metrics,
            "alarms": self._read_alarms,
        }
        for first_name, step in steps.items():
            try:
                for check in step():
                    self._add(check)
            except TryEnded:
                return
            except AWS_ERRORS as error:
                done = {check.name for check in self.checks}
                names = list(EXPECTED)
                later = names[names.index(first_name) :]
                name = next(name for name in later if name not in done)
                self._add(Check(name, error_text(error)))
                if not self._job:
                    return

    def _add(self, check: Check) -> None:
        self.checks.append(check)
        mark = "same" if check.is_same else "DIFFERS"
        self._account.say(f"{check.name}: {check.seen} ({mark})")

    def all_checks(self, removal: str) -> list[Check]:
        """Returns a row for every check, also for those that were not reached."""
        seen = {check.name: check.seen for check in self.checks} | {"removal": removal}
        return [Check(name, seen.get(name)) for name in EXPECTED]

    def _deploy(self) -> Iterator[Check]:
        account, names = self._account, self._names
        account.say(f"creating the bucket {names.bucket} with the asset and the template")
        resources.upload(account, names, self._package)
        resources.create_fingerprint_key(account, names)
        account.say(f"creating the stack {names.stack} (about 4 minutes)")
        start = account.now()
        resources.create_stack(account, names)
        stack = account.poll(self._finished_stack, limit_s=_STACK_LIMIT_S, every_s=_EVERY_S)
        state = "CREATE_IN_PROGRESS" if stack is None else stack["StackStatus"]
        if stack is None or state != EXPECTED["stack"]:
            yield Check("stack", f"{state}: {self._first_failure()}")
            raise TryEnded
        self._outputs = {row["OutputKey"]: row["OutputValue"] for row in stack["Outputs"]}
        self._add_fact("stack", f"created in {_seconds(start, account.now())}")
        yield Check("stack", state)

    def _finished_stack(self) -> dict[str, Any] | None:
        formation = self._account.client("cloudformation")
        [stack] = formation.describe_stacks(StackName=self._names.stack)["Stacks"]
        is_working = stack["StackStatus"].endswith("_PROGRESS")
        return None if is_working else dict(stack)

    def _first_failure(self) -> str:
        """Returns the reason of the oldest failed event, which caused the others."""
        formation = self._account.client("cloudformation")
        events = formation.describe_stack_events(StackName=self._names.stack)["StackEvents"]
        failures = [
            f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', 'no reason')}"
            for event in events
            if event["ResourceStatus"].endswith("_FAILED")
        ]
        return failures[-1] if failures else "no event has failed"

    def _run_job(self) -> Iterator[Check]:
        account, names, name = self._account, self._names, self._names.job
        topic, image = self._outputs[NOTICES_TOPIC], self._package.image
        self._queue_url = resources.subscribe_queue(account, names, topic)
        arn = resources.create_role(account, names)
        account.say(f"starting the processing job {name} (about 5 minutes)")
        is_started = account.poll(
            lambda: resources.start_job(account, names, image, arn),
            limit_s=_ROLE_LIMIT_S,
            every_s=5,
        )
        if not is_started:
            yield Check("job", f"not started: its role was not usable for {_ROLE_LIMIT_S} s")
            raise TryEnded
        sagemaker = account.client("sagemaker")

        def ended() -> dict[str, Any] | None:
            job: dict[str, Any] = sagemaker.describe_processing_job(ProcessingJobName=name)
            return None if job["ProcessingJobStatus"] in {"InProgress", "Stopping"} else job

        job = account.poll(ended, limit_s=_JOB_LIMIT_S, every_s=_EVERY_S)
        if job is None:
            yield Check("job", f"still running after {_JOB_LIMIT_S // 60} minutes")
            raise TryEnded
        self._job = job
        reason = job.get("FailureReason") or job.get("ExitMessage")
        status = job["ProcessingJobStatus"]
        yield Check("job", f"{status}: {reason}" if reason else status)
        if start := job.get("ProcessingStartTime"):
            self._add_fact("job", f"waited {_seconds(job['CreationTime'], start)}")

    def _read_audit(self) -> Iterator[Check]:
        account = self._account
        account.say("waiting for the audit, which comes 5 to 6 minutes after the job's end")
        dynamodb, table = account.client("dynamodb"), self._outputs["TableName"]
        pk = keys.job_pk(JobKey(self._job["ProcessingJobArn"], self._job["CreationTime"]))

        def items() -> list[dict[str, Any]] | None:
            rows: list[dict[str, Any]] = dynamodb.query(
                TableName=table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": pk}},
            )["Items"]
            return rows or None

        stored = account.poll(items, limit_s=_AUDIT_LIMIT_S, every_s=_EVERY_S)
        if stored is None:
            yield Check("audits stored", f"none within {_AUDIT_LIMIT_S // 60} minutes")
            return
        end = self._job.get("ProcessingEndTime") or self._job["LastModifiedTime"]
        self._add_fact("audit", f"found {_seconds(end, account.now())} after the job's end")
        versions = sum(item["sk"]["S"].startswith(keys.AUDIT_PREFIX) for item in stored)
        yield Check("audits stored", str(versions))
        [self._head] = [item for item in stored if item["sk"]["S"] == keys.HEAD_SK]
        words = (self._attribute(name) for name in ("kind", "status", "instance"))
        yield Check("audited job", ", ".join(words))
        yield Check("bill", self._compare_bill())
        yield Check("indexes", ", ".join(sorted(self._indexes_with_run(table, pk))))

    def _attribute(self, name: str) -> str:
        value = self._head.get(name)
        return f"no {name}" if value is None else str(next(iter(value.values())))

    def _compare_bill(self) -> str:
        """Compares the bill with the rate times the seconds that Describe shows."""
        start, end = (self._job.get(f"Processing{word}Time") for word in ("Start", "End"))
        total = self._attribute("total_usd")
        seconds = 0 if start is None or end is None else (end - start).total_seconds()
        calculated = self._package.usd_per_hour * Decimal(str(seconds)) / 3600
        self._add_fact("bill", f"${total} ({self._attribute('spend_qualifier')}), {seconds:.0f} s")
        if "total_usd" not in self._head:
            return "unknown"
        is_same = abs(Decimal(total) - calculated) <= _BILL_TOLERANCE_USD
        return EXPECTED["bill"] if is_same else f"${total}, but calculated ${calculated:.6f}"

    def _indexes_with_run(self, table: str, pk: str) -> Iterator[str]:
        dynamodb = self._account.client("dynamodb")
        for index in keys.INDEXES:
            if index.partition_key in self._head:
                rows = dynamodb.query(
                    TableName=table,
                    IndexName=index.name,
                    KeyConditionExpression="#key = :key",
                    ExpressionAttributeNames={"#key": index.partition_key},
                    ExpressionAttributeValues={":key": self._head[index.partition_key]},
                )["Items"]
                if any(row["pk"]["S"] == pk for row in rows):
                    yield index.name

    def _receive(self) -> Iterator[Check]:
        self._account.say("waiting for the message")
        sqs, job = self._account.client("sqs"), self._names.job
        texts: list[str] = []

        def message() -> bool | None:
            answer = sqs.receive_message(QueueUrl=self._queue_url, MaxNumberOfMessages=10)
            for row in answer.get("Messages", ()):
                texts.append(json.loads(row["Body"])["Message"])
                sqs.delete_message(QueueUrl=self._queue_url, ReceiptHandle=row["ReceiptHandle"])
            return any(job in text for text in texts) or None

        self._account.poll(message, limit_s=_MESSAGE_LIMIT_S, every_s=_EVERY_S)
        own = [text for text in texts if job in text]
        yield Check("messages about the job", str(len(own)))
        for text in own[:1]:
            self._add_fact("message", text)
        if others := len(texts) - len(own):
            self._add_fact("messages", f"{others} about other jobs of the account")

    def _read_metrics(self) -> Iterator[Check]:
        for name, namespace, label in (
            ("job's metrics", _JOB_NAMESPACE, f"{self._names.job}/"),
            ("sageaudit's metrics", self._names.stack, ""),
        ):
            expected = set(EXPECTED[name].split(", "))
            yield Check(name, ", ".join(sorted(self._wait_for_metrics(namespace, label, expected))))

    def _wait_for_metrics(self, namespace: str, host: str, expected: set[str]) -> set[str]:
        """Waits until all expected metrics are listed, and returns those that are."""
        listed: set[str] = set()

        def are_all_listed() -> bool | None:
            rows = self._account.pages("cloudwatch", "list_metrics", "Metrics", Namespace=namespace)
            listed.update(
                row["MetricName"]
                for row in rows
                if not host or any(part["Value"].startswith(host) for part in row["Dimensions"])
            )
            return listed >= expected or None

        self._account.poll(are_all_listed, limit_s=_METRICS_LIMIT_S, every_s=_EVERY_S)
        return listed & expected

    def _read_alarms(self) -> Iterator[Check]:
        prefix = f"{self._names.stack}-"
        alarms = list(
            self._account.pages(
                "cloudwatch", "describe_alarms", "MetricAlarms", AlarmNamePrefix=prefix
            )
        )
        raised = [alarm["AlarmName"] for alarm in alarms if alarm["StateValue"] == "ALARM"]
        yield Check("alarms", f"{len(alarms)}, {', '.join(raised) or 'none'} raised")
        sqs, total = self._account.client("sqs"), 0
        for url in (url for name, url in self._outputs.items() if "Dead" in name):
            attributes = sqs.get_queue_attributes(
                QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"]
            )["Attributes"]
            total += int(attributes["ApproximateNumberOfMessages"])
        yield Check("dead letters", str(total))

    def _add_fact(self, name: str, text: str) -> None:
        self.facts.append(Fact(name, text))


def _seconds(start: datetime, end: datetime) -> str:
    return f"{(end - start).total_seconds():.0f} s"
