"""The account of `make try` on the local AWS: moto, its stack with the real handlers, one job."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from moto.cloudformation.models import cloudformation_backends

from local import ACCOUNT, REGION
from local.aws import LocalAws, local_account, local_session
from local.clock import LocalClock
from local.pricing import refuse_prices
from local.recorded import RecordedJob
from local.requests import Answer, RequestRouter, http_answer
from local.stack import quiet_templates, stub_asset
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import RawSeries
from tests.fakes.lambda_events import parse_counts
from tests.fakes.quick_moto import quick_moto
from tools.try_account.__main__ import try_deployment
from tools.try_account.account import Account, make_names
from tools.try_account.cost import image_uri
from tools.try_account.policy import POLICY
from tools.try_account.resources import Package

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
NAMES = make_names("SageAuditTry-0123abcd", REGION)
USD_PER_HOUR = Decimal("0.04992")
"""The estimate of us-east-1: the local AWS has no price list."""
_STARTS_AFTER, _RUNS = timedelta(seconds=150), timedelta(seconds=130)
_URL = "https://api.sagemaker"


class TryWorld:
    """The account; time passes only while the try sleeps.

    `failure`: the job's failure reason, if it fails. `interrupt_after`: the operation after whose
    first call the user presses Ctrl-C. `denied`: the operation that is denied. `rolls_back`:
    whether CloudFormation rolls the stack back. `unusable_role_calls`: how often the job's role is
    too new to be used.
    """

    def __init__(self, clock: LocalClock) -> None:
        self.clock, self.session = clock, local_session()
        self.lines: list[str] = []
        self.failure: str | None = None
        self.interrupt_after = self.denied = ""
        self.rolls_back = False
        self.unusable_role_calls = 2
        self._aws: LocalAws | None = None
        self._jobs: dict[str, dict[str, Any]] = {}
        self._has_ended = False
        self._metric_counts: dict[str, int] = {}
        self.session.events.register("before-parameter-build", self._before)
        self.session.events.register("after-call", self._after)
        requests = RequestRouter(self.session)
        refuse_prices(requests)
        answers: Mapping[str, Answer] = {
            "CreateProcessingJob": self._create,
            "DescribeProcessingJob": self._describe,
            "ListProcessingJobs": self._list,
            "StopProcessingJob": self._stop,
            "DeleteProcessingJob": self._delete,
        }
        for operation, answer in answers.items():
            requests.register_answer(f"before-send.sagemaker.{operation}", answer)

    @property
    def account(self) -> Account:
        """The account as the try sees it."""
        return Account(self.session, ACCOUNT, REGION, self.clock.now, self.sleep, self.lines.append)

    def run(self, template: str) -> tuple[str, bool]:
        """Runs a try with a template for moto, and returns the checklist, and whether all is as
        expected.
        """
        package = Package(stub_asset(), template, image_uri(REGION), USD_PER_HOUR)
        return try_deployment(self.account, NAMES, package, "a title")

    def sleep(self, seconds: float) -> None:
        """Lets time pass: the job ends, and the functions work."""
        until = self.clock.now() + timedelta(seconds=seconds)
        if self._aws is None and "CREATE_COMPLETE" in self._stack_states():
            self._attach()
        for job in self._jobs.values():
            if not self._has_ended and job["end"] <= until and self._aws is not None:
                self._has_ended = True
                self._aws.end_job(self._recorded(job))
        if self._aws is not None and "CREATE_COMPLETE" in self._stack_states():
            self._aws.advance(until)
            self._put_own_metrics()
        self.clock.advance_to(until)

    def leftovers(self) -> list[str]:
        """What exists in the account, apart from what AWS itself keeps."""
        client = self.session.client
        return [
            *self._stack_states(),
            *client("dynamodb").list_tables()["TableNames"],
            *(row["Name"] for row in client("s3").list_buckets()["Buckets"]),
            *(row["RoleName"] for row in client("iam").list_roles()["Roles"]),
            *(row["Name"] for row in client("secretsmanager").list_secrets()["SecretList"]),
            *(
                url
                for url in client("sqs").list_queues().get("QueueUrls", ())
                if "mailbox" not in url
            ),
            *self._jobs,
        ]

    def _stack_states(self) -> list[str]:
        rows = local_session().client("cloudformation").list_stacks()["StackSummaries"]
        return [row["StackStatus"] for row in rows if row["StackStatus"] != "DELETE_COMPLETE"]

    def _attach(self) -> None:
        """Connects the functions to the stack's queues, and adds the alarms, which moto skips."""
        self._aws = LocalAws(
            self.clock,
            policy=POLICY,
            transport=None,
            on_step=lambda _: None,
            sweeps=False,
            stack=NAMES.stack,
        )
        cloudwatch = self.session.client("cloudwatch")
        for number in range(29):
            cloudwatch.put_metric_alarm(
                AlarmName=f"{NAMES.stack}-Alarms{number}",
                ComparisonOperator="GreaterThanThreshold",
                EvaluationPeriods=1,
                MetricName="Errors",
                Namespace="AWS/Lambda",
                Period=60,
                Statistic="Sum",
                Threshold=0,
            )

    def _put_own_metrics(self) -> None:
        """Puts the metrics that the functions logged, as CloudWatch Logs extracts them."""
        assert self._aws is not None
        cloudwatch = self.session.client("cloudwatch")
        for function in self._aws.functions.values():
            for (metric, _), count in parse_counts(function.log.getvalue()).items():
                if self._metric_counts.get(metric) != count:
                    self._metric_counts[metric] = count
                    cloudwatch.put_metric_data(
                        Namespace=NAMES.stack,
                        MetricData=[{"MetricName": metric, "Value": count}],
                    )

    def _before(self, model: Any, **_: Any) -> None:
        if model.name == self.denied:
            message = f"not authorized to perform: {model.name} in {ACCOUNT}"
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": message}}, model.name)

    def _after(self, model: Any, **_: Any) -> None:
        if model.name == "CreateStack" and self.rolls_back:
            [stack] = cloudformation_backends[ACCOUNT][REGION].stacks.values()
            stack.status = "ROLLBACK_COMPLETE"
            stack.events[0].resource_status = "CREATE_FAILED"
            stack.events[0].resource_status_reason = "You have exceeded a limit."
        if model.name == self.interrupt_after:
            self.interrupt_after = ""
            raise KeyboardInterrupt

    def _create(self, request: Any, **_: Any) -> AWSResponse:
        if self.unusable_role_calls:
            self.unusable_role_calls -= 1
            text = "Could not assume role. Please ensure that the role exists."
            return http_answer(_URL, 400, {"__type": "ValidationException", "message": text})
        body, now = json.loads(request.body), self.clock.now()
        start = now + _STARTS_AFTER
        end = start if self.failure else start + _RUNS
        self._jobs[body["ProcessingJobName"]] = {
            "request": body, "created": now, "start": start, "end": end,
        }  # fmt: skip
        return http_answer(_URL, 200, {"ProcessingJobArn": _arn(body["ProcessingJobName"])})

    def _describe(self, request: Any, **_: Any) -> AWSResponse:
        job = self._jobs[json.loads(request.body)["ProcessingJobName"]]
        answer = self._answer(job)
        times = {key: value.timestamp() for key, value in answer.items() if key.endswith("Time")}
        return http_answer(_URL, 200, {**answer, **times})

    def _answer(self, job: Mapping[str, Any]) -> dict[str, Any]:
        request = job["request"]
        common = {
            **{key: value for key, value in request.items() if key != "Tags"},
            "ProcessingJobArn": _arn(request["ProcessingJobName"]),
            "CreationTime": job["created"],
            "LastModifiedTime": job["end"],
            "ProcessingJobStatus": "InProgress",
        }
        if self.clock.now() < job["end"]:
            return common
        if self.failure:
            return common | {"ProcessingJobStatus": "Failed", "FailureReason": self.failure}
        return common | {
            "ProcessingJobStatus": "Completed",
            "ProcessingStartTime": job["start"],
            "ProcessingEndTime": job["end"],
        }

    def _recorded(self, job: Mapping[str, Any]) -> RecordedJob:
        """Returns the job as it ended, with three metrics of its host."""
        self.clock.advance_to(job["end"])
        describe = self._answer(job)
        texts = {k: v.isoformat() for k, v in describe.items() if isinstance(v, datetime)}
        host = f"{NAMES.job}/algo-1"
        names = ("CPUUtilization", "MemoryUtilization", "DiskUtilization")
        series = () if self.failure else tuple(
            RawSeries(host=host, metric=name, start=job["start"], period_s=60, values=(1.0, 2.0))
            for name in names
        )  # fmt: skip
        tags = {tag["Key"]: tag["Value"] for tag in job["request"]["Tags"]}
        return RecordedJob(JobKind.PROCESSING, {**describe, **texts}, tags, series)

    def _list(self, **_: Any) -> AWSResponse:
        rows = [
            {
                "ProcessingJobName": name,
                "ProcessingJobArn": _arn(name),
                "CreationTime": job["created"].timestamp(),
                "ProcessingJobStatus": self._answer(job)["ProcessingJobStatus"],
            }
            for name, job in self._jobs.items()
        ]
        return http_answer(_URL, 200, {"ProcessingJobSummaries": rows})

    def _stop(self, request: Any, **_: Any) -> AWSResponse:
        job = self._jobs[json.loads(request.body)["ProcessingJobName"]]
        job["end"], self._has_ended = self.clock.now() + timedelta(seconds=20), True
        return http_answer(_URL, 200, {})

    def _delete(self, request: Any, **_: Any) -> AWSResponse:
        del self._jobs[json.loads(request.body)["ProcessingJobName"]]
        return http_answer(_URL, 200, {})


@contextmanager
def try_world() -> Iterator[TryWorld]:
    """Yields an empty account."""
    with ExitStack() as stack:
        stack.enter_context(quick_moto())
        stack.enter_context(quiet_templates())
        clock = stack.enter_context(local_account(START))
        yield TryWorld(clock)


def _arn(name: str) -> str:
    return f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:processing-job/{name}"
