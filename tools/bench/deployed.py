"""Counts what one audit requests from a deployed stack: `python -m tools.bench deployed`.

On the local AWS, a GPU job of one host ends and is audited, one channel gets a message, and a sweep
follows. All functions have just started, so secrets are read too, and the day's price list. Two
more jobs end: before the first one all functions start again, before the second one none. Then a
job's event comes again, another job's event waits for late metrics, a heartbeat arrives, and an
expensive job runs for an hour. Requests are counted as AWS bills them, request units by DynamoDB's
size formula. Prices are those of tools/pages/running_cost.py.
"""

from __future__ import annotations

import base64
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from unittest import mock

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from moto.dynamodb.models import dynamodb_backends

from local import ACCOUNT, REGION
from local.aws import LocalAws
from local.functions import LocalFunction
from local.recorded import RecordedJob
from local.requests import Send, http_answer
from sageaudit.adapters.history.dynamo.keys import INDEXES
from sageaudit.adapters.prices.packaged import instance_types, packaged_prices
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.members import HEARTBEAT_SOURCE, TEMPLATE_VERSION, VERSION_KEY
from sageaudit.domain.policy.routes import Routes
from sageaudit.structs import replace
from tests.fakes.capacity import item_bytes, read_units
from tests.fakes.price_lists import PricingClient, product, volume
from tests.integration.whole_flow import recorded, renamed, scene
from tools.bench.measure import Row
from tools.bench.sweeps import member_units
from tools.pages.running_cost import (
    HOSTS,
    MONTH_DAYS,
    REPEATED_SHARE,
    SWEEPS,
    USD,
    Item,
    Usage,
    items,
)

JOB, CHANNEL = "composed-g4dn-12xlarge", "slack"
JOBS_A_MONTH = 5_000
"""The costs of a month's sweeps and of a day's price list are divided among these jobs."""
IDLE_MINUTES = 10
"""How long Lambda keeps an idle function (mikhail.io, aws-lambda-cold-starts-after-10-minutes)."""
COLD_SHARE = math.exp(-IDLE_MINUTES / (MONTH_DAYS * 24 * 60 / JOBS_A_MONTH))
"""The assumed share of audits for which all functions start: jobs end independently of each other,
and idle functions live for IDLE_MINUTES."""
START_S: Mapping[str, float] = {
    "audit": 0.5, "notify": 0.4, "deliver": 0.4, "sweep": 0.4, "watch": 0.4
}  # fmt: skip
"""CPU seconds of a start, by `make bench PART=starts`. Lambda bills the time and gives a core."""
SWEEP_EVERY, MINUTE = timedelta(minutes=15), timedelta(minutes=1)
UNIT_BYTES, EVENT_BYTES, PLATFORM_BYTES = 1024, 26, 1_000
"""Bytes: of a write unit; that Logs adds to a line; of Lambda's own lines of an invocation (our
estimate)."""
FULL_CORE_MIB = 1_769
"""The memory with which Lambda gives a whole core."""
NEAR, NEAR_S, FAR_S = frozenset({"dynamodb", "sqs", "secrets-manager"}), 0.01, 0.1
"""The assumed time of a request to these services, and to others, in seconds."""
_BARE = "write units without transactions and indexes"
_SERVICE = {"secrets-manager": "Secrets Manager requests", "sqs": "SQS requests"}


@dataclass
class Meter:
    """Counts the requests of the functions: `calls` by function and operation, `used` as billed."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    used: dict[str, float] = field(default_factory=dict)
    running: list[LocalFunction] = field(default_factory=list)
    elsewhere_s: float = 0.0
    """CPU time of the local AWS in the current invocation, which is not the function's."""

    def add(self, name: str, number: float = 1) -> None:
        """Adds to a billed quantity."""
        self.used[name] = self.used.get(name, 0) + number

    def count_request(self, operation: str, request: AWSPreparedRequest, send: Send) -> AWSResponse:
        """Counts one request of a handler, and returns its answer."""
        began, function = time.process_time(), self.running[-1]
        answer = send()
        self.elsewhere_s += time.process_time() - began
        service, _, name = operation.partition(".")
        self.calls[function.name, operation] += 1
        wait_s = NEAR_S if service in NEAR else FAR_S
        self.add("GB-seconds", wait_s * function.memory_mib / 1024)
        if service in _SERVICE:
            self.add(_SERVICE[service])
        elif operation == "cloudwatch.GetMetricData":
            self.add("metrics requested", len(json.loads(request.body)["MetricDataQueries"]))
        elif service == "dynamodb":
            self._units(name, _parsed(request.body), _parsed(answer.content))
        return answer

    def _units(self, operation: str, parameters: Any, answer: Any) -> None:
        """Counts request units: two for each action of a transaction, one for each index."""
        if operation in {"GetItem", "Query"}:
            items = answer.get("Items", [answer["Item"]] if "Item" in answer else [])
            units = read_units(items, consistent=bool(parameters.get("ConsistentRead")))
            self.add("read units", units)
        for action in parameters.get("TransactItems", []):
            self._write(*action.values(), times=2)
        if operation in {"PutItem", "UpdateItem"}:
            self._write(parameters, times=1)

    def _write(self, action: Mapping[str, Any], *, times: int) -> None:
        """Counts by the item's size after the write. A put item is written to its indexes again."""
        item = action.get("Item") or _stored(action["TableName"], action["Key"])
        copies = sum(index.partition_key in action.get("Item", ()) for index in INDEXES)
        units = max(math.ceil(item_bytes(item) / UNIT_BYTES), 1)
        self.add("write units", (times + copies) * units)
        if "Item" in action or "UpdateExpression" in action:
            self.add(_BARE, units)

    def take_counts(self) -> Meter:
        """Returns what was counted so far, and starts again from 0."""
        was = Meter(self.calls, self.used)
        self.calls, self.used = Counter(), {}
        return was

    def wrap_invoke(
        self, function: LocalFunction, clock: Callable[[], datetime]
    ) -> Callable[[Any], Any]:
        """Returns the function's `invoke` with counting.

        It includes the requests of the queue's poller, which receives and deletes the message, and
        the pauses of the function, which advance `clock`.
        """
        invoke = function.invoke

        def invoked(event: Any) -> Any:
            self.running.append(function)
            began, logged = time.process_time(), len(function.log.getvalue())
            began_at = clock()
            try:
                return invoke(event)
            finally:
                cpu_s = time.process_time() - began - self.elsewhere_s
                self.elsewhere_s = 0.0
                self.running.pop()
                self.calls[function.name, "invocations"] += 1
                self.add("invocations")
                self.add("GB-seconds", cpu_s * FULL_CORE_MIB / 1024)
                paused_s = (clock() - began_at).total_seconds()
                self.add("GB-seconds", paused_s * function.memory_mib / 1024)
                lines = function.log.getvalue()[logged:]
                logged_bytes = len(lines) + EVENT_BYTES * lines.count("\n") + PLATFORM_BYTES
                self.add("log kB", logged_bytes / 1000)
                if "messageId" in event.get("Records", [{}])[0]:
                    self.add("SQS requests", 2)

        return invoked

    def wrap_build(self, function: LocalFunction) -> Callable[[], Any]:
        """Returns the function's `_build_handler`, whose time is that of a start."""
        build: Callable[[], Any] = function._build_handler  # noqa: SLF001 - only its time counts

        def built() -> Any:
            began_s = time.process_time()
            handler = build()
            self.elsewhere_s += time.process_time() - began_s
            return handler

        return built


def _parsed(body: Any) -> Any:
    """Returns DynamoDB's JSON, with binary values as bytes."""

    def read(value: dict[str, Any]) -> Any:
        binary = value.keys() == {"B"} and isinstance(value["B"], str)
        return {"B": base64.b64decode(value["B"])} if binary else value

    return json.loads(body, object_hook=read)


def _stored(table: str, key: Mapping[str, Any]) -> dict[str, Any]:
    stored_item = dynamodb_backends[ACCOUNT][REGION].get_item(table, dict(key))
    return dict(stored_item.to_json()["Attributes"]) if stored_item else {}


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted, by event.

    `audit`: the day's first audit with its message, `cold`: one for which all functions start,
    `warm`: one for which none does. `after`: the sweep and watch after it; `nothing`: those that
    find nothing. `duplicate`: the same event again. `waiting`: an event that waits once for late
    metrics, without its audit. `heartbeat`: a member's heartbeat. `watched`: four sweeps and
    watches, while an expensive job runs for an hour on HOSTS hosts. `memory_gib`: by function.
    """

    audit: Meter
    cold: Meter
    warm: Meter
    after: Meter
    nothing: Meter
    duplicate: Meter
    waiting: Meter
    heartbeat: Meter
    watched: Meter
    memory_gib: Mapping[str, float]

    @property
    def price_list(self) -> dict[str, float]:
        """What reading the day's price list uses."""
        return weighted_sum((1, self.audit.used), (-1, self.cold.used))

    def start_gb_s(self, *functions: str) -> float:
        """Returns the GB-seconds of starting these functions."""
        return sum(START_S[name] * self.memory_gib[name] for name in functions)


@cache
def counts() -> Counts:
    """Returns the counts of all events."""
    job, meter = recorded(JOB), Meter()
    with (
        scene(job.ended_at - 2 * SWEEP_EVERY, routes=Routes(default=(CHANNEL,))) as running_scene,
        ExitStack() as patches,
    ):
        aws = running_scene.aws
        aws.requests.interceptor = meter.count_request
        aws.requests.register_answer("before-send.pricing.GetProducts", _price_list())
        for function in aws.functions.values():
            patches.enter_context(
                mock.patch.object(function, "invoke", meter.wrap_invoke(function, aws.clock.now))
            )
            patches.enter_context(
                mock.patch.object(function, "_build_handler", meter.wrap_build(function))
            )
        aws.sweep()
        meter.take_counts()
        aws.clock.advance_to(job.ended_at - SWEEP_EVERY)
        aws.sweep()
        nothing = meter.take_counts()
        audit = _count_audit(aws, job, meter)
        for function in aws.functions.values():
            function.stop()
        cold = _count_audit(aws, renamed(job, "second", later=MINUTE), meter)
        warm = _count_audit(aws, renamed(job, "third", later=2 * MINUTE), meter)
        aws.clock.advance_to(job.ended_at + 3 * SWEEP_EVERY)
        aws.sweep()
        after = meter.take_counts()
        aws.put_event(job.event())
        aws.advance()
        meter.add("SQS requests")
        duplicate = meter.take_counts()
        _send_heartbeat(aws)
        aws.advance()
        meter.add("SQS requests")
        heartbeat = meter.take_counts()
        late_job = renamed(job, "late", later=timedelta(hours=2))
        aws.end_job(late_job, with_metrics=False)
        aws.advance(until=late_job.ended_at + timedelta(minutes=6))
        waiting = meter.take_counts()
        _run_expensive_job(aws, renamed(job, "running", later=timedelta(hours=6)))
        return Counts(
            audit=audit,
            cold=cold,
            warm=warm,
            after=after,
            nothing=nothing,
            duplicate=duplicate,
            waiting=waiting,
            heartbeat=heartbeat,
            watched=meter.take_counts(),
            memory_gib={name: one.memory_mib / 1024 for name, one in aws.functions.items()},
        )


def _count_audit(aws: LocalAws, job: RecordedJob, meter: Meter) -> Meter:
    aws.end_job(job)
    aws.advance()
    meter.add("SQS requests")  # EventBridge's own
    return meter.take_counts()


def _price_list() -> Callable[..., AWSResponse]:
    """Returns a function that answers GetProducts with the packaged prices of the region."""
    prices = packaged_prices()
    rates = {
        name: rate
        for name in instance_types()
        if (rate := prices.current_rate(REGION, Component.TRAINING, name)) is not None
    }
    products = [
        product(name, str(rate.rate.usd), region=REGION, effective=f"{prices.as_of}T00:00:00Z")
        for name, rate in rates.items()
    ]
    storage = volume("0.14", region=REGION, component=Component.TRAINING)
    client = PricingClient([*products, storage])

    def answer(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        return http_answer(request.url, 200, client.get_products(**json.loads(request.body)))

    return answer


def _send_heartbeat(aws: LocalAws) -> None:
    # moto's EventBridge sends events without an account, so this one goes to the queue.
    event = {
        "source": HEARTBEAT_SOURCE,
        "account": "222222222222",
        "region": REGION,
        "time": aws.clock.now().isoformat(),
        "detail": {VERSION_KEY: TEMPLATE_VERSION},
    }
    aws.session.client("sqs").send_message(
        QueueUrl=aws.physical_id("TriggerFinishedJobs"), MessageBody=json.dumps(event)
    )


def _run_expensive_job(aws: LocalAws, job: RecordedJob) -> None:
    """Runs the first hour of the job's work on HOSTS hosts; sweeps begin 8 minutes after it."""
    cluster = {**job.describe["ResourceConfig"], "InstanceCount": HOSTS}
    job = replace(job, describe={**job.describe, "ResourceConfig": cluster})
    aws.sagemaker.add_running(job)
    began_at = next(
        datetime.fromisoformat(phase["StartTime"])
        for phase in job.describe["SecondaryStatusTransitions"]
        if phase["Status"] == "Training"
    )
    for number in range(timedelta(hours=1) // SWEEP_EVERY):
        aws.clock.advance_to(began_at + timedelta(minutes=8) + number * SWEEP_EVERY)
        aws.sweep()


def weighted_sum(*parts: tuple[float, Mapping[str, float]]) -> dict[str, float]:
    """Returns the sum of quantities by unit, each multiplied by the weight before it."""
    units = sorted({unit for _, used in parts for unit in used})
    return {unit: sum(weight * used.get(unit, 0) for weight, used in parts) for unit in units}


def month_items() -> tuple[Item, ...]:
    """Returns what a deployment uses in a month, by these counts."""
    counted = counts()
    checks = timedelta(hours=1) // SWEEP_EVERY
    used = Usage(
        audit=counted.cold.used,
        price_list=counted.price_list,
        sweep=counted.nothing.used,
        duplicate=counted.duplicate.used,
        waiting=counted.waiting.used,
        watched={
            name: number - checks * counted.nothing.used.get(name, 0)
            for name, number in counted.watched.used.items()
        },
        heartbeat=counted.heartbeat.used,
        member=member_units(),
    )
    return items(used)


def audit_parts() -> dict[str, dict[str, float]]:
    """Returns what one of JOBS_A_MONTH audits uses of each billed unit, by its cause."""
    counted, sweeps = counts(), SWEEPS / JOBS_A_MONTH
    nothing, ended = counted.nothing.used, len((counted.audit, counted.cold, counted.warm))
    start_s = {"GB-seconds": counted.start_gb_s("audit", "notify", "deliver")}
    sweep_start = {"GB-seconds": counted.start_gb_s("sweep", "watch"), "events": 2}
    return {
        "the audit and its message": counted.warm.used,
        f"starts, for {COLD_SHARE:.0%} of audits": weighted_sum(
            (COLD_SHARE, counted.cold.used), (-COLD_SHARE, counted.warm.used), (COLD_SHARE, start_s)
        ),
        "the price list, once a day": weighted_sum((MONTH_DAYS / JOBS_A_MONTH, counted.price_list)),
        "sweeps and watches, which always start": weighted_sum(
            (sweeps, nothing),
            (sweeps, sweep_start),
            (1 / ended, counted.after.used),
            (-1 / ended, nothing),
        ),
        f"{REPEATED_SHARE:.0%} of events wait, and as many come again": weighted_sum(
            (REPEATED_SHARE, counted.waiting.used), (REPEATED_SHARE, counted.duplicate.used)
        ),
    }


def usd_per_1000(used: Mapping[str, float]) -> float:
    """Returns the price of 1,000 times these quantities. Some are counted but not billed."""
    return sum(1000 * float(USD[unit]) * number for unit, number in used.items() if unit in USD)


def rows() -> Iterator[Row]:
    """Yields the requests of an audit by function and operation, then what they cost.

    The floor is what CloudWatch and DynamoDB charge for the metrics and for writing each item once.
    """
    counted, parts = counts(), audit_parts()
    for (function, operation), number in sorted(counted.audit.calls.items()):
        yield Row.of_count(f"{function}: {operation}", number, "the day's first")
    for cause, used in parts.items():
        yield Row.of_count(cause, usd_per_1000(used), "USD per 1,000")
    used = weighted_sum(*((1, part) for part in parts.values()))
    warm = counted.warm.used
    floors = {"metrics requested": warm["metrics requested"], "write units": warm[_BARE]}
    for unit in USD:
        if unit in used:
            usd, floor = usd_per_1000({unit: used[unit]}), usd_per_1000({unit: floors.get(unit, 0)})
            label = f"{unit}: {used[unit]:,.2f} an audit"
            yield Row.of_count(label, usd, "USD per 1,000", floor=floor or None)
    all_usd, floor_usd = usd_per_1000(used), usd_per_1000(floors)
    yield Row.of_count("an audit", all_usd, "USD per 1,000", "at most 0.14", floor_usd)
    for name, event in {
        "the event again": counted.duplicate,
        "an event that waits for metrics": counted.waiting,
        "a heartbeat": counted.heartbeat,
        "an expensive job's hour, with its sweeps": counted.watched,
    }.items():
        yield Row.of_count(name, usd_per_1000(event.used), "USD per 1,000")
