"""Measures a warm audit: the CPU time of one record in a process that has audited others.

The local AWS audits runs of one family, and the answers to `audit` are recorded as bytes. Then
`audit` is built again, and its requests are answered with these bytes below botocore: the SDK
serializes, signs and parses, but nothing is sent. Each record is a batch of its own, about a job of
a new name. The peer makes the same requests with boto3's own settings, and does nothing else.
"""

from __future__ import annotations

import importlib
import io
import itertools
import logging
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple
from unittest import mock

import boto3
from botocore import xform_name
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from moto.cloudwatch.models import cloudwatch_backends

from local import ACCOUNT, REGION
from local.demo import POLICY
from local.requests import Send, http_answer
from sageaudit.adapters.aws.clients import new_session
from sageaudit.adapters.files.policy_file import load_policy
from tests.integration.whole_flow import delivered, recorded, renamed, scene

JOB, JOB_NAME = "composed-g4dn-12xlarge", "train-2026-{:08}"
EARLIER_RUNS = (1, 20)
"""How many runs of the family were audited before. A run is judged with at most 50, but the local
AWS needs about a CPU second for each."""
RECORDS = 30
"""Records of one sample, and of the warm-up."""


class RecordedAnswer(NamedTuple):
    """The answer to one request. `operation`: such as "sqs.SendMessage"."""

    operation: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    def replay(self, old: str = "", new: str = "") -> tuple[str, AWSResponse]:
        """Returns the operation and its answer, in which a job's name is replaced."""
        body = self.body.replace(old.encode(), new.encode()) if old else self.body
        checksum = {"x-amz-crc32": str(zlib.crc32(body))}
        return self.operation, http_answer("", self.status, body, {**self.headers, **checksum})


class RecordedAudits:
    """The audits of runs of one family: the function's environment, and the answers to each run."""

    def __init__(self, count: int) -> None:
        job = recorded(JOB)
        self.runs = [
            renamed(job, JOB_NAME.format(number), later=timedelta(seconds=number))
            for number in range(count)
        ]
        self.answers: list[list[RecordedAnswer]] = []
        with scene(job.ended_at) as running_scene:
            aws, function = running_scene.aws, running_scene.aws.functions["audit"]
            aws.requests.interceptor = self._record
            for run in self.runs:
                cloudwatch_backends[ACCOUNT][REGION].reset()  # moto searches the points of all runs
                aws.end_job(run)
                self.answers.append([])
                function.invoke(_event(delivered(run)))
            self.variables = dict(function.variables)

    def _record(self, operation: str, request: AWSPreparedRequest, send: Send) -> AWSResponse:
        del request
        answer = send()
        status, headers = answer.status_code, dict(answer.headers)
        self.answers[-1].append(RecordedAnswer(operation, status, headers, bytes(answer.content)))
        return answer


def _event(body: str) -> dict[str, Any]:
    record = {
        "messageId": "1",
        "receiptHandle": "1",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:finished",
    }
    return {"Records": [record]}


class WarmAudits:
    """A warm `audit` function whose requests have recorded answers."""

    def __init__(self, earlier_runs: int) -> None:
        audits = RecordedAudits(earlier_runs + 1)
        self._first_run, self._last_run = audits.runs[0], audits.runs[-1]
        self._last_answers = audits.answers[-1]
        self._numbers = itertools.count(earlier_runs + 1)
        self._variables = audits.variables
        self._answers: Iterator[tuple[str, AWSResponse]] = iter(())
        self._calls: list[tuple[str, str, dict[str, Any]]] | None = None
        with self._environment():
            session = self._answered(new_session())
            session.events.register("before-parameter-build", self._note_call)
            self._handler = importlib.import_module("audit.handler").build(
                self._variables,
                session=session,
                clock=lambda: self._last_run.ended_at,
                policy=load_policy(POLICY),
            )
            self._audit(self._first_run.name, audits.answers[0], delivered(self._first_run))
            self._calls = []
            self._audit_next()
            calls, self._calls = self._calls, None
            self._methods = [self._method(*call) for call in calls]
        self.ms_per_record(), self.boto3_ms_per_record()

    def _answered(self, session: Any) -> Any:
        session.events.register("before-send", self._next_answer)
        return session

    def _next_answer(self, event_name: str, **_: Any) -> AWSResponse:
        operation, answer = next(self._answers)
        if event_name != f"before-send.{operation}":
            raise RuntimeError(f"{event_name} instead of {operation}")
        return answer

    def _note_call(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        if self._calls is not None:
            self._calls.append((model.service_model.service_name, model.name, params))

    def _method(
        self, service: str, operation: str, parameters: dict[str, Any]
    ) -> Callable[[], object]:
        client = self._plain_client(service)
        return lambda: getattr(client, xform_name(operation))(**parameters)

    @cache  # noqa: B019 - the object lives as long as the process
    def _plain_client(self, service: str) -> Any:
        return self._answered(boto3.Session()).client(service)

    @contextmanager
    def _environment(self) -> Iterator[None]:
        keys = {
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_DEFAULT_REGION": REGION,
        }
        log = io.StringIO()
        with mock.patch.dict(os.environ, {**keys, **self._variables}), redirect_stdout(log):
            for handler in logging.getLogger(self._variables["POWERTOOLS_SERVICE_NAME"]).handlers:
                if isinstance(handler, logging.StreamHandler):
                    handler.stream = log
            yield

    def _audit(self, name: str, answers: list[RecordedAnswer], body: str) -> float:
        """Audits a job, and returns the milliseconds of CPU time."""
        self._answers = iter([answer.replay(self._last_run.name, name) for answer in answers])
        event = _event(body.replace(self._last_run.name, name))
        began_s = time.process_time()
        result = self._handler(event, None)
        taken_s = time.process_time() - began_s
        if result["batchItemFailures"] or next(self._answers, None):
            raise RuntimeError("the record failed, or made fewer requests")
        return 1000 * taken_s

    def _audit_next(self) -> float:
        name = JOB_NAME.format(next(self._numbers))
        return self._audit(name, self._last_answers, delivered(self._last_run))

    def ms_per_record(self) -> float:
        """Returns the mean CPU time of a record."""
        with self._environment():
            return sum(self._audit_next() for _ in range(RECORDS)) / RECORDS

    def boto3_ms_per_record(self) -> float:
        """Returns the mean CPU time of a record's requests alone."""
        with self._environment():
            return sum(self._request_all() for _ in range(RECORDS)) / RECORDS

    def _request_all(self) -> float:
        self._answers = iter([answer.replay() for answer in self._last_answers])
        began_s = time.process_time()
        for call in self._methods:
            call()
        return 1000 * (time.process_time() - began_s)


_warm_audits = cache(WarmAudits)

MEASURED: Mapping[str, tuple[str, Callable[[], float]]] = {
    label: ("ms", call)
    for count in EARLIER_RUNS
    for label, call in {
        f"a warm audit, n={count}": lambda count=count: _warm_audits(count).ms_per_record(),
        f"peer: its requests by boto3 alone, n={count}": lambda count=count: _warm_audits(
            count
        ).boto3_ms_per_record(),
    }.items()
}
