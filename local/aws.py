"""The local AWS: the synthesized template in moto, with events and timing as in AWS, in one thread.

Its only clock is `clock`, which also delays and hides messages of queues. So late metrics, waiting
tuning jobs and a channel that asks to wait take their real time on this clock, but nothing sleeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from typing import Any
from unittest import mock

import botocore.loaders
import botocore.session
from moto import mock_aws

from infra.names import FINGERPRINT_KEY
from local import ACCOUNT, REGION
from local.clock import LocalClock
from local.functions import FunctionError, LocalFunction, OnStep
from local.pricing import refuse_prices
from local.queues import count_visibility_from_receive
from local.recorded import RecordedJob
from local.requests import RequestRouter
from local.sagemaker import RecordedSageMaker, put_series
from local.schedule import Schedule
from local.sources import QueueSource, Source
from local.stack import create_stack, stack_resources
from local.streams import StreamSource
from local.workers import InlineWorkers
from sageaudit.adapters.aws.clients import new_session
from sageaudit.adapters.channels.services import SERVICES
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.domain.policy.policy import Policy

_MAX_STEPS = 20_000
_LOADER = botocore.loaders.create_loader()


class LocalAws:
    """A running stack. `resources`: moto's physical ids by the template's logical ids.

    `functions` are by handler name. `sources`: the functions' event source mappings. `requests`:
    routes the functions' requests to AWS. `mails`: the messages that a subscriber of the topic got.
    `stack`: the name of a stack that is already in moto; by default one is created.
    """

    def __init__(
        self,
        clock: LocalClock,
        *,
        policy: Policy,
        transport: Any,
        on_step: OnStep,
        sweeps: bool,
        template: str | None = None,
        stack: str | None = None,
    ) -> None:
        self.clock = clock
        self.schedule = Schedule(clock, is_enabled=sweeps)
        self.session = local_session()
        self.resources = (
            create_stack(self.session, template)
            if stack is None
            else stack_resources(self.session, stack)
        )
        handlers = _hooked_session(local_session(), on_step)
        self.requests = RequestRouter(handlers)
        self.sagemaker = RecordedSageMaker(self.requests, clock.now)
        refuse_prices(self.requests)
        build_arguments_by_handler = {
            "audit": {"policy": policy},
            "notify": {"policy": policy},
            "deliver": {"policy": policy, "transport": transport},
            "sweep": {
                "policy": policy,
                "seconds": lambda: clock.now().timestamp(),
                "sleep": clock.advance,
                "open_workers": InlineWorkers,
            },
            "watch": {"policy": policy, "open_workers": InlineWorkers},
            "digest": {"policy": policy},
        }
        self.functions: dict[str, LocalFunction] = {}
        for function in self.session.client("lambda").list_functions()["Functions"]:
            name = function["Handler"].split(".")[0]
            build = {"session": handlers, "clock": clock.now, **build_arguments_by_handler[name]}
            self.functions[name] = LocalFunction(function, build, on_step)
        self._create_secrets(policy)
        if policy.digest and policy.digest.report_bucket:
            self.session.client("s3").create_bucket(Bucket=policy.digest.report_bucket)
        self.sources = list(self._mappings())
        self._events = self.session.client("events")
        self._mailbox = self._subscribe_mailbox()
        self.mails: list[dict[str, Any]] = []
        self.delivery_count = 0
        """The number of polls in which a source had records for its function."""

    def end_job(self, job: RecordedJob, *, with_metrics: bool = True) -> None:
        """Ends a job: adds it to SageMaker and CloudWatch, and puts its event on the bus.

        Without `with_metrics` the job's metrics are late, until `put_metrics` adds them.
        """
        self.clock.advance_to(job.ended_at)
        self.sagemaker.add(job)
        if with_metrics:
            self.put_metrics(job)
        self.put_event(job.event())

    def put_metrics(self, job: RecordedJob) -> None:
        """Puts a job's series into CloudWatch."""
        put_series(self.session, job)

    def put_event(self, entry: Mapping[str, Any]) -> None:
        """Puts one event on the bus."""
        self._events.put_events(Entries=[dict(entry)])

    def advance(self, until: datetime | None = None) -> None:
        """Handles everything that is due until `until`; with None, until no message waits."""
        for _ in range(_MAX_STEPS):
            if self.schedule.is_due():
                self.sweep()
            if self._poll():
                continue
            source_times = [source.next_at() for source in self.sources]
            sweep_time = self.schedule.next_at if until is not None else None
            next_moment = min(
                (next_at for next_at in (*source_times, sweep_time) if next_at is not None),
                default=None,
            )
            if next_moment is None or (until is not None and next_moment > until):
                break
            self.clock.advance_to(next_moment)
        else:
            raise RuntimeError(f"messages still wait on the local AWS after {_MAX_STEPS} steps")
        self.mails += self._take(self._mailbox)
        if until is not None:
            self.clock.advance_to(until)

    def sweep(self) -> None:
        """Invokes the sweep, then the watch, like their schedules, without waiting for answers."""
        self.schedule.mark_run()
        for name in ("sweep", "watch"):
            with suppress(FunctionError):
                self.functions[name].invoke({})

    def digest(self) -> None:
        """Invokes the digest like its schedule."""
        with suppress(FunctionError):
            self.functions["digest"].invoke({})

    def physical_id(self, name: str) -> str:
        """Returns the physical id of a resource, by its logical id without the hash."""
        [physical] = [value for key, value in self.resources.items() if key[:-8] == name]
        return physical

    def take_messages(self, name: str) -> list[dict[str, Any]]:
        """Takes all messages from a queue of the stack."""
        return self._take(self.physical_id(name))

    def history(self) -> DynamoHistory:
        """Returns the history, for reading."""
        return DynamoHistory(self.session.client("dynamodb"), self.physical_id("HistoryTable"))

    def _take(self, url: str) -> list[dict[str, Any]]:
        sqs, messages_taken = self.session.client("sqs"), []
        while messages := sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        ).get("Messages"):
            for message in messages:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            messages_taken += messages
        return messages_taken

    def _subscribe_mailbox(self) -> str:
        url: str = self.session.client("sqs").create_queue(QueueName="mailbox")["QueueUrl"]
        self.session.client("sns").subscribe(
            TopicArn=self.physical_id("NoticesTopic"),
            Protocol="sqs",
            Endpoint=f"arn:aws:sqs:{REGION}:{ACCOUNT}:mailbox",
        )
        return url

    def _poll(self) -> bool:
        """Polls each source that is due once; returns whether any source had records."""
        delivery_count, now = 0, self.clock.now()
        for source in self.sources:
            next_at = source.next_at()
            delivery_count += next_at is not None and next_at <= now and source.poll()
        self.delivery_count += delivery_count
        return delivery_count > 0

    def _mappings(self) -> Iterator[Source]:
        """Yields the stack's event source mappings.

        Disables the mappings in moto, which would start Docker.
        """
        client, sqs = self.session.client("lambda"), self.session.client("sqs")
        function_by_arn = {function.arn: function for function in self.functions.values()}
        for mapping in client.list_event_source_mappings()["EventSourceMappings"]:
            client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
            function = function_by_arn[mapping["FunctionArn"]]
            if ":dynamodb:" in mapping["EventSourceArn"]:
                yield StreamSource(sqs, mapping, function, self.clock.now)
            else:
                yield QueueSource(sqs, mapping, function)

    def _create_secrets(self, policy: Policy) -> None:
        """Creates the channels' secrets, which may exist already, as they outlive a stack."""
        store = self.session.client("secretsmanager")
        secrets = {FINGERPRINT_KEY: "local"}
        for name, channel in policy.channels.items():
            if form := SERVICES[channel.service].secret_format:
                secrets[str(channel.secret)] = form.example.replace("local", name)
        for name, text in secrets.items():
            with suppress(store.exceptions.ResourceExistsException):
                store.create_secret(Name=name, SecretString=text)


@contextmanager
def local_aws(
    start: datetime,
    *,
    policy: Policy,
    transport: Any,
    on_step: OnStep = lambda _: None,
    run_sweeps: bool = False,
) -> Iterator[LocalAws]:
    """Starts the local AWS at `start`.

    `policy`: the policy of all functions, with the channels of the template. `transport` posts to
    Slack and Teams. `on_step` is called before and after each AWS call of a handler. With
    `run_sweeps`, `advance` runs sweeps at their times.
    """
    with local_account(start) as clock:
        yield LocalAws(
            clock, policy=policy, transport=transport, on_step=on_step, sweeps=run_sweeps
        )


@contextmanager
def local_account(start: datetime) -> Iterator[LocalClock]:
    """Starts moto without a stack, and yields the clock that it follows."""
    clock = LocalClock(start)
    with ExitStack() as stack:
        stack.enter_context(mock_aws())
        stack.enter_context(clock.patch_moto())
        stack.enter_context(count_visibility_from_receive())
        stack.enter_context(
            # moto sends stream records to functions even if the mapping is disabled
            mock.patch("moto.awslambda.models.LambdaBackend.send_dynamodb_items", return_value=None)
        )
        yield clock


def local_session() -> Any:
    """Returns a session that shares botocore's parsed files, which take most of the start time."""
    core = botocore.session.get_session()
    core.register_component("data_loader", _LOADER)
    return new_session(region=REGION, core=core)


def _hooked_session(session: Any, on_step: OnStep) -> Any:
    def before(model: Any, **_: Any) -> None:
        on_step(f"before {model.name}")

    def after(model: Any, **_: Any) -> None:
        on_step(f"after {model.name}")

    session.events.register("before-parameter-build", before)
    session.events.register("after-call", after)
    return session
