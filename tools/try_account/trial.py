"""The steps of a try: each does something in the account, and adds rows to the checklist."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from infra.names import FINGERPRINT_KEY, NOTICES_TOPIC, TAG
from infra.release_template import ASSET_BUCKET, ASSET_KEY
from sageaudit.adapters.history.dynamo import keys
from sageaudit.domain.audit.summary import JobKey
from tools.try_account.account import Account, Names
from tools.try_account.checklist import EXPECTED, Check, Fact
from tools.try_account.cost import INSTANCE_TYPE, MAX_RUNTIME_S
from tools.try_account.removal import error_code

STACK_LIMIT_S, JOB_LIMIT_S, AUDIT_LIMIT_S, MESSAGE_LIMIT_S = 1800, 1800, 1200, 600
METRICS_LIMIT_S = 900
"""ListMetrics shows a new metric after up to 15 minutes."""
_ROLE_LIMIT_S = 180
"""IAM's roles can be used some seconds after they are created."""
_EVERY_S = 15
_JOB_S = 120
_METRICS_AGE = timedelta(hours=1)
_JOB_NAMESPACE = "/aws/sagemaker/ProcessingJobs"
_BILL_TOLERANCE_USD = Decimal("0.001")
"""The most by which the bill may differ: the volume of 1 GB, which the rate does not include."""
_ASSET, _TEMPLATE = "asset.zip", "template.json"


class Package(Struct, frozen=True):
    """What is deployed, and the job's image."""

    asset: bytes
    template: str
    image: str
    usd_per_hour: Decimal


class TryEnded(Exception):
    """The steps after this one would only wait for what cannot come."""


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
        """Runs all steps. An error of AWS is what was seen, and ends the try.

        KeyboardInterrupt passes through; `checks` then has the rows up to there.
        """
        steps: tuple[Callable[[], Iterator[Check]], ...] = (
            self._deploy, self._run_job, self._read_audit, self._receive, self._read_metrics,
            self._read_alarms,
        )  # fmt: skip
        for step in steps:
            try:
                for check in step():
                    self.checks.append(check)
                    mark = "same" if check.is_same else "DIFFERS"
                    self._account.say(f"{check.name}: {check.seen} ({mark})")
            except TryEnded:
                return
            except (ClientError, BotoCoreError) as error:
                name = next(name for name in EXPECTED if name not in self._done())
                self.checks.append(Check(name, str(error)))
                self._account.say(f"{name}: {error}")
                return

    def all_checks(self, removed: str) -> list[Check]:
        """Returns a row for every check, also for those that were not reached."""
        seen = {check.name: check.seen for check in self.checks} | {"removed": removed}
        return [Check(name, seen.get(name)) for name in EXPECTED]

    def _done(self) -> set[str]:
        return {check.name for check in self.checks}

    def _deploy(self) -> Iterator[Check]:
        account, names = self._account, self._names
        account.say(f"creating the bucket {names.bucket} with the asset and the template")
        s3, elsewhere = account.client("s3"), {"LocationConstraint": account.region}
        place = {} if account.region == "us-east-1" else {"CreateBucketConfiguration": elsewhere}
        s3.create_bucket(Bucket=names.bucket, **place)
        s3.put_object(Bucket=names.bucket, Key=_ASSET, Body=self._package.asset)
        s3.put_object(Bucket=names.bucket, Key=_TEMPLATE, Body=self._package.template.encode())
        store = account.client("secretsmanager")
        with suppress(store.exceptions.ResourceExistsException):  # of a deployment that stays
            store.create_secret(
                Name=FINGERPRINT_KEY,
                SecretString="0" * 64,
                Tags=[{"Key": TAG, "Value": names.stack}],
            )
        account.say(f"creating the stack {names.stack} (about 4 minutes)")
        start, formation = account.now(), account.client("cloudformation")
        formation.create_stack(
            StackName=names.stack,
            TemplateURL=f"https://{names.bucket}.s3.{account.region}.amazonaws.com/{_TEMPLATE}",
            Parameters=[
                {"ParameterKey": ASSET_BUCKET, "ParameterValue": names.bucket},
                {"ParameterKey": ASSET_KEY, "ParameterValue": _ASSET},
            ],
            Capabilities=["CAPABILITY_NAMED_IAM"],
        )
        stack = account.poll(self._finished_stack, limit_s=STACK_LIMIT_S, every_s=_EVERY_S)
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
        account, name = self._account, self._names.job
        self._subscribe()
        arn = self._create_role()
        account.say(f"starting the processing job {name} (about 5 minutes)")
        sagemaker = account.client("sagemaker")
        account.poll(lambda: self._start_job(sagemaker, arn), limit_s=_ROLE_LIMIT_S, every_s=5)

        def ended() -> dict[str, Any] | None:
            job: dict[str, Any] = sagemaker.describe_processing_job(ProcessingJobName=name)
            return None if job["ProcessingJobStatus"] in {"InProgress", "Stopping"} else job

        job = account.poll(ended, limit_s=JOB_LIMIT_S, every_s=_EVERY_S)
        if job is None:
            yield Check("job", f"still running after {JOB_LIMIT_S // 60} minutes")
            raise TryEnded
        self._job = job
        reason = job.get("FailureReason") or job.get("ExitMessage")
        status = job["ProcessingJobStatus"]
        yield Check("job", f"{status}: {reason}" if reason else status)
        if start := job.get("ProcessingStartTime"):
            self._add_fact("job", f"waited {_seconds(job['CreationTime'], start)}")

    def _subscribe(self) -> None:
        """Subscribes a queue of its own to the topic of messages."""
        account, topic = self._account, self._outputs[NOTICES_TOPIC]
        sqs = account.client("sqs")
        self._queue_url = sqs.create_queue(QueueName=self._names.queue)["QueueUrl"]
        answer = sqs.get_queue_attributes(QueueUrl=self._queue_url, AttributeNames=["QueueArn"])
        arn = answer["Attributes"]["QueueArn"]
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "sns.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": arn,
            "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        sqs.set_queue_attributes(QueueUrl=self._queue_url, Attributes={"Policy": policy})
        account.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)

    def _create_role(self) -> str:
        """Creates the job's role, which may pull the image and write log and metrics.

        They are the permissions without data in "CreateProcessingJob API: Execution Role
        Permissions" of SageMaker's developer guide.
        """
        iam, name = self._account.client("iam"), self._names.role
        trust = {
            "Effect": "Allow",
            "Principal": {"Service": "sagemaker.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
        allowed = {
            "Effect": "Allow",
            "Action": [
                "cloudwatch:PutMetricData", "logs:CreateLogStream", "logs:PutLogEvents",
                "logs:CreateLogGroup", "logs:DescribeLogStreams", "ecr:GetAuthorizationToken",
                "ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer",
                "ecr:BatchGetImage",
            ],
            "Resource": "*",
        }  # fmt: skip
        trust_policy, policy = (
            json.dumps({"Version": "2012-10-17", "Statement": [row]}) for row in (trust, allowed)
        )
        role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust_policy)["Role"]
        iam.put_role_policy(RoleName=name, PolicyName="job", PolicyDocument=policy)
        return str(role["Arn"])

    def _start_job(self, sagemaker: Any, role_arn: str) -> bool | None:
        """Starts the job; returns None if the role cannot be used yet. Raises ClientError."""
        code = f"import time; time.sleep({_JOB_S})"
        try:
            sagemaker.create_processing_job(
                ProcessingJobName=self._names.job,
                RoleArn=role_arn,
                AppSpecification={
                    "ImageUri": self._package.image,
                    "ContainerEntrypoint": ["python3", "-c", code],
                },
                ProcessingResources={
                    "ClusterConfig": {
                        "InstanceType": INSTANCE_TYPE,
                        "InstanceCount": 1,
                        "VolumeSizeInGB": 1,
                    }
                },
                StoppingCondition={"MaxRuntimeInSeconds": MAX_RUNTIME_S},
                Tags=[{"Key": "owner", "Value": "sageaudit-try"}],
            )
        except ClientError as error:
            if error_code(error) == "ValidationException" and "assume" in str(error):
                return None
            raise
        return True

    def _read_audit(self) -> Iterator[Check]:
        account = self._account
        account.say("waiting for the audit, which comes 5 to 6 minutes after the job's end")
        dynamodb, table = account.client("dynamodb"), self._outputs["TableName"]
        pk = keys.job_pk(JobKey(self._job["ProcessingJobArn"], self._job["CreationTime"]))

        def items() -> list[dict[str, Any]] | None:
            found: list[dict[str, Any]] = dynamodb.query(
                TableName=table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": pk}},
            )["Items"]
            return found or None

        found = account.poll(items, limit_s=AUDIT_LIMIT_S, every_s=_EVERY_S)
        if found is None:
            yield Check("audit", f"none within {AUDIT_LIMIT_S // 60} minutes")
            return
        end = self._job.get("ProcessingEndTime") or self._job["LastModifiedTime"]
        self._add_fact("audit", f"found {_seconds(end, account.now())} after the job's end")
        versions = sum(item["sk"]["S"].startswith(keys.AUDIT_PREFIX) for item in found)
        yield Check("audit", f"{versions} version" + ("" if versions == 1 else "s"))
        [self._head] = [item for item in found if item["sk"]["S"] == keys.HEAD_SK]
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

        limit_s = MESSAGE_LIMIT_S if self._head else 0
        self._account.poll(message, limit_s=limit_s, every_s=_EVERY_S)
        own = [text for text in texts if job in text]
        yield Check("message", f"{len(own)} about the job")
        for text in own[:1]:
            self._add_fact("message", text)
        if others := len(texts) - len(own):
            self._add_fact("messages", f"{others} about other jobs of the account")

    def _read_metrics(self) -> Iterator[Check]:
        for name, namespace, label in (
            ("job's metrics", _JOB_NAMESPACE, f"{self._names.job}/"),
            ("own metrics", self._names.stack, ""),
        ):
            wanted = set(EXPECTED[name].split(", "))
            self._account.poll(
                lambda wanted=wanted, namespace=namespace, label=label: (  # type: ignore[misc]
                    wanted <= self._metric_names(namespace, label) or None
                ),
                limit_s=METRICS_LIMIT_S,
                every_s=_EVERY_S,
            )
            yield Check(name, ", ".join(sorted(self._metric_names(namespace, label) & wanted)))

    def _metric_names(self, namespace: str, host: str) -> set[str]:
        cloudwatch = self._account.client("cloudwatch")
        pages = cloudwatch.get_paginator("list_metrics").paginate(Namespace=namespace)
        return {
            row["MetricName"]
            for page in pages
            for row in page["Metrics"]
            if not host or any(part["Value"].startswith(host) for part in row["Dimensions"])
        }

    def _read_alarms(self) -> Iterator[Check]:
        cloudwatch = self._account.client("cloudwatch")
        pages = cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=f"{self._names.stack}-"
        )
        alarms = [alarm for page in pages for alarm in page["MetricAlarms"]]
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
