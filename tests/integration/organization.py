"""A day of an organization on the local AWS: accounts join, leave, deny access and are mended.

`python -m tests.integration.organization 300 5 3 2` prints the day of 300 accounts, of which 5 deny
something, 3 join and 2 leave: events, audits, dead letters, alarms, doctor's rows and the digest.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from typing import Any
from urllib.parse import parse_qs

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from msgspec import Struct

from local.demo import POLICY
from local.recorded import RecordedJob
from local.requests import RequestRouter, Send, http_answer
from local.sagemaker import RecordedSageMaker
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.adapters.history.dynamo.member_registry import DynamoMemberRegistry
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import (
    HEARTBEAT_DETAIL_TYPE,
    HEARTBEAT_SOURCE,
    TEMPLATE_VERSION,
    VERSION_KEY,
    Member,
)
from sageaudit.domain.policy.routes import Routes
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.structs import replace
from sageaudit.workflows.doctor.run import check_members
from tests.fakes.jobs import REGION
from tests.integration.alarm_states import AlarmStates
from tests.integration.whole_flow import Scene, a_failed_job, renamed, scene

DAY_START = datetime(2026, 5, 21, 0, 0, tzinfo=UTC)
"""A Thursday: the digest after three more days is of its week."""
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MENDED_AT = DAY_START + 14 * HOUR
"""When the first broken member, which lacks the role at first, can be read again."""
JOINS_AT = DAY_START + 5 * HOUR
LEAVES_AT = DAY_START + 16 * HOUR
MEMBERS = MemberAccounts(organization="o-a1b2c3d4e5", organization_role="sageaudit-read")
NO_ROLE = "no role until 14:00"
FAULTS = (NO_ROLE, "no Describe", "no ListTrainingJobs", "region off", "no role")
"""What the broken members lack. An organization with more of them repeats the list."""
_STS_ERROR = (
    "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>"
    "<Message>not authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>"
)


class OrganizationSize(Struct, frozen=True):
    """How many accounts an organization has, and how many of them change within the day.

    `account_count` includes the accounts that are broken and that leave, but not those that join.
    """

    account_count: int
    broken_count: int
    joining_count: int
    leaving_count: int


SMALL = OrganizationSize(12, 2, 1, 1)


class _AccountAnswers(RequestRouter):
    """Holds the answers of one account's SageMaker. Needs no session."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}

    def register_answer(self, event: str, answer: Any) -> None:
        self.answers[event] = answer


class Organization:
    """The accounts of an organization, each with a SageMaker of its own and one job in the day."""

    def __init__(self, current_scene: Scene, size: OrganizationSize) -> None:
        self.aws = current_scene.aws
        self.scene = current_scene
        names = [f"{200_000_000_000 + number}" for number in range(size.account_count)]
        self.joining = [f"{300_000_000_000 + number}" for number in range(size.joining_count)]
        self.broken = dict(zip(names, islice(cycle(FAULTS), size.broken_count), strict=False))
        self.leaving = names[len(names) - size.leaving_count :]
        self.present = names
        self.job_by_account: dict[str, RecordedJob] = {}
        self.sent_events = Counter[str]()
        self._sagemaker: dict[str, _AccountAnswers] = {}
        self._nobody = self._new_sagemaker()[0]
        self._account_by_key: dict[str, str] = {}
        self._queue_url = self.aws.functions["audit"].variables["FINISHED_QUEUE_URL"]
        self.aws.requests.interceptor = self._answer

    @property
    def accounts(self) -> list[str]:
        """All accounts that are members at some time of the day."""
        return [*self.present, *self.joining]

    def fault(self, account: str) -> str | None:
        """Returns what an account lacks now; None if it can be read."""
        now, fault = self.aws.clock.now(), self.broken.get(account)
        if account in self.leaving and now >= LEAVES_AT:
            return "left"
        return None if fault == NO_ROLE and now >= MENDED_AT else fault

    def has_template(self, account: str) -> bool:
        """Returns whether the account's events are forwarded now."""
        now = self.aws.clock.now()
        if account in self.joining:
            return now >= JOINS_AT
        return account not in self.leaving or now < LEAVES_AT

    def send_heartbeat(self, account: str) -> None:
        """Puts an account's heartbeat into the queue, like the stack's rule."""
        detail = {VERSION_KEY: TEMPLATE_VERSION}
        self._send(account, HEARTBEAT_SOURCE, HEARTBEAT_DETAIL_TYPE, detail)

    def end_job(self, account: str, ended_at: datetime) -> None:
        """Ends the account's job, and puts its event into the queue."""
        job = _job_of(account, ended_at)
        self.job_by_account[account] = job
        answers, sagemaker = self._new_sagemaker()
        sagemaker.add(job)
        self._sagemaker[account] = answers
        entry = job.event()
        self._send(account, entry["Source"], entry["DetailType"], json.loads(entry["Detail"]))

    def _send(self, account: str, source: str, detail_type: str, detail: Any) -> None:
        # moto's EventBridge drops the account of an event, so the queue gets the body itself.
        self.sent_events[detail_type] += 1
        event = {
            "source": source,
            "detail-type": detail_type,
            "account": account,
            "region": REGION,
            "time": self.aws.clock.now().isoformat(),
            "detail": detail,
        }
        sqs = self.aws.session.client("sqs")
        sqs.send_message(QueueUrl=self._queue_url, MessageBody=json.dumps(event))

    def _new_sagemaker(self) -> tuple[_AccountAnswers, RecordedSageMaker]:
        answers = _AccountAnswers()
        return answers, RecordedSageMaker(answers, self.aws.clock.now)

    def _answer(self, name: str, request: AWSPreparedRequest, send: Send) -> AWSResponse:
        service, _, operation = name.partition(".")
        if service == "sts":
            return self._assume_role(request, send)
        if service != "sagemaker":
            return send()
        account = self._account_of(request)
        if (refusal := _refusal(self.fault(account), operation)) is not None:
            status, code = refusal
            return http_answer(request.url, status, {"__type": code, "message": "refused"})
        if account not in self.accounts:
            return send()
        answers = self._sagemaker.get(account, self._nobody).answers
        return answers[f"before-send.{name}"](event_name=name, request=request)

    def _assume_role(self, request: AWSPreparedRequest, send: Send) -> AWSResponse:
        body = request.body.decode() if isinstance(request.body, bytes) else request.body
        [role] = parse_qs(body)["RoleArn"]
        account = role.split(":")[4]
        is_missing = account not in self.accounts or not self.has_template(account)
        if is_missing or self.fault(account) in {NO_ROLE, "no role", "left"}:
            return http_answer(request.url, 403, _STS_ERROR.encode())
        answer = send()
        [key] = re.findall(r"<AccessKeyId>(\w+)</AccessKeyId>", answer.text)
        self._account_by_key[key] = account
        return answer

    def _account_of(self, request: AWSPreparedRequest) -> str:
        authorization = request.headers["Authorization"]
        text = authorization.decode() if isinstance(authorization, bytes) else authorization
        [key] = re.findall(r"Credential=(\w+)/", text)
        return self._account_by_key.get(key, "home")

    # Results

    def members(self) -> dict[AccountRegion, Member]:
        """Returns the registered members."""
        return self._registry().members()

    def waiting_count(self) -> int:
        """Returns how many events wait for their members."""
        registry = self._registry()
        return sum(1 for member in registry.members() for _ in registry.waiting_events(member))

    def _registry(self) -> DynamoMemberRegistry:
        table = self.aws.physical_id("HistoryTable")
        return DynamoMemberRegistry(self.aws.session.client("dynamodb"), table)

    def audit_count(self, account: str) -> int:
        """Returns how many jobs of an account are audited."""
        return sum(1 for _ in self.aws.history().runs(RunQuery.for_account(account)))

    def doctor_lines(self) -> list[str]:
        """Returns the rows of `doctor --members`; equal texts of several members are one line."""
        _answer_doctor(self.scene)
        checks = check_members("SageAudit", self.aws.session, REGION, self.aws.clock.now())
        names_by_text: dict[str, list[str]] = {}
        for check in checks:
            text = re.sub(r"T\d\d:\d\d:\d\d[\d.]*\+00:00", "", f"{check.state}: {check.found}")
            names_by_text.setdefault(text, []).append(check.name)
        return [_line(names, text) for text, names in names_by_text.items()]


def _line(names: list[str], text: str) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}: {text}"


def _refusal(fault: str | None, operation: str) -> tuple[int, str] | None:
    """Returns the HTTP status and code with which SageMaker refuses a call; None if it answers."""
    if fault == "region off":
        return 400, "UnrecognizedClientException"
    is_describe_denied = fault == "no Describe" and operation.startswith("Describe")
    is_denied = is_describe_denied or fault in {"left", f"no {operation}"}
    return (400, "AccessDeniedException") if is_denied else None


def _job_of(account: str, ended_at: datetime) -> RecordedJob:
    """Returns the failed job of an account."""
    recorded = a_failed_job()
    job = renamed(recorded, f"train-{account}", later=ended_at - recorded.ended_at)
    text = json.dumps(job.describe).replace(recorded.arn.split(":")[4], account)
    return replace(job, describe=json.loads(text))


def _answer_doctor(current_scene: Scene) -> None:
    """Lets a session's CloudFormation and Lambda answer as if the stack were deployed."""
    aws = current_scene.aws
    outputs = {"TableName": aws.physical_id("HistoryTable"), "SweepFunctionName": "sweep"}

    def describe(params: Any, **_: Any) -> Any:
        rows = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
        return _Answer(200), {"Stacks": [{"Outputs": rows}]}

    def invoke(params: Any, **_: Any) -> Any:
        answer = aws.functions["sweep"].invoke(json.loads(params["body"]))
        return _Answer(200), {"Payload": io.BytesIO(json.dumps(answer).encode())}

    aws.session.events.register("before-call.cloudformation.DescribeStacks", describe)
    aws.session.events.register("before-call.lambda.Invoke", invoke)


class _Answer(Struct, frozen=True):
    """The part of an HTTP answer that botocore reads after `before-call`."""

    status_code: int


@contextmanager
def organization(size: OrganizationSize) -> Iterator[Organization]:
    """Yields an organization at the start of its day, with sweeps at the template's rate."""
    policy = replace(load_policy(POLICY), members=MEMBERS, routes=Routes(("sns",)))
    with scene(DAY_START, sweeps=True, policy=policy) as current_scene:
        yield Organization(current_scene, size)


def run_day(org: Organization, step: timedelta = HOUR) -> dict[datetime, set[str]]:
    """Runs the day; returns the alarms that a value of a step breached, by the step's end.

    Each account sends its heartbeat in the first step in which it has the template, and ends its
    job in another one. There is one sweep in each step, since most of the time goes into sweeps.
    """
    step_count, known, alarms = DAY // step, set[str](), {}
    org.aws.schedule.interval = step
    for number in range(step_count):
        states = AlarmStates(org.aws)
        for account in filter(org.has_template, org.accounts):
            if account not in known:
                known.add(account)
                org.send_heartbeat(account)
            if _job_step(org, account, step_count) == number:
                org.end_job(account, org.aws.clock.now())
        org.aws.advance(DAY_START + (number + 1) * step)
        if breaching := states.breaching():
            alarms[org.aws.clock.now()] = breaching
    return alarms


def _job_step(org: Organization, account: str, step_count: int) -> int:
    """Returns the step in which an account's job ends: broken members first, joining ones last."""
    if account in org.joining:
        return int(step_count * 0.6)
    return 1 + org.present.index(account) % (step_count // 2)


def advance_three_days(org: Organization) -> None:
    """Lets three days pass, at whose end there are heartbeats and a sweep."""
    org.aws.clock.advance(3 * DAY.total_seconds())
    for account in filter(org.has_template, org.accounts):
        org.send_heartbeat(account)
    org.aws.advance()


class DayResult(Struct, frozen=True):
    """What a day of an organization led to.

    `alarms` has the alarms that a value breached, by the time until which it was counted.
    `doctor_lines` and `digest` are of three days later.
    """

    audits_by_account: dict[str, int]
    waiting_count: int
    counts: dict[str, int]
    alarms: dict[datetime, set[str]]
    doctor_lines: list[str]
    digest: str
    dead_letter_count: int


def run_organization(org: Organization, step: timedelta) -> DayResult:
    """Runs the day and three more days, and the digest after them."""
    alarms = run_day(org, step)
    audits = {account: org.audit_count(account) for account in org.accounts}
    waiting_count = org.waiting_count()
    counts = {
        name: org.scene.count(name, function)
        for function, names in _COUNTS.items()
        for name in names
    }
    advance_three_days(org)
    doctor_lines = org.doctor_lines()
    org.aws.digest()
    org.aws.advance()
    digest = org.scene.mails()[-1]
    dead = len(org.scene.dead_letters())
    return DayResult(audits, waiting_count, counts, alarms, doctor_lines, digest, dead)


_COUNTS = {
    "audit": ("JobsAudited", "DuplicateEvents", "EventsWaiting", "AuditFailed", "RejectedEvents"),
    "sweep": ("SweepFailed", "MembersUnreadable", "JobsMissing", "LostEventsFound"),
    "watch": ("WatchFailed",),
}
"""The metrics that a result has, by function."""


def result_lines(org: Organization, result: DayResult) -> list[str]:
    """Returns a result as lines for a person."""
    audited = [account for account, count in result.audits_by_account.items() if count]
    return [
        f"events sent: {dict(org.sent_events)}",
        f"accounts with an audit: {len(audited)} of {len(org.accounts)}",
        *(
            f"  not audited on the day: {account}: {org.fault(account)}"
            for account in org.accounts
            if account not in audited
        ),
        f"events that wait for their member: {result.waiting_count}",
        *(f"{name}: {count}" for name, count in result.counts.items()),
        "alarms that a value breached, by the end of the step:",
        *([] if result.alarms else ["  none"]),
        *(
            f"  {moment:%H:%M}: {', '.join(sorted(names))}"
            for moment, names in result.alarms.items()
        ),
        f"dead letters: {result.dead_letter_count}",
        "",
        "doctor --members, three days later:",
        *result.doctor_lines,
        "",
        result.digest,
    ]


def main(arguments: list[str]) -> None:
    """Prints the day of an organization with the given numbers of accounts."""
    size = OrganizationSize(*map(int, arguments)) if arguments else SMALL
    with organization(size) as org:
        lines = result_lines(org, run_organization(org, HOUR))
    sys.stdout.write("\n".join([str(size), *lines, ""]))


if __name__ == "__main__":
    main(sys.argv[1:])
