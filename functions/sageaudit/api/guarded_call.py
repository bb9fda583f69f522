"""Checks one call of boto3 that starts jobs, with at most one second for the history."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from msgspec import Struct

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.pipeline import unpriced_steps
from sageaudit.domain.request.recognise import FileFormat
from sageaudit.errors import SageauditError
from sageaudit.output.text.guard_text import CallCost, call_cost
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows import check_files
from sageaudit.workflows.check.comparison import counted_findings
from sageaudit.workflows.check.document import CheckedFile, sort_rows
from sageaudit.workflows.check.request import FamilyHistory, PlannedJob
from sageaudit.workflows.check.run import RequestChecker, read_family

HISTORY_TIMEOUT_S = 1.0
"""How long a call waits for the history. It is our choice."""
_MAX_NAME_LENGTH = 80
_SUFFIXES = {kind: {"", kind.spec.action_suffix} for kind in JobKind}
_KIND_BY_CALL = {
    f"Create{kind.spec.prefix}Job{suffix}": kind
    for kind, suffixes in _SUFFIXES.items()
    for suffix in suffixes
}
_VERBS = {
    "CreatePipeline": "created",
    "UpdatePipeline": "updated",
    "StartPipelineExecution": "started",
    **dict.fromkeys(_KIND_BY_CALL, "created"),
}
"""The calls that are checked, and what did not happen if one is refused."""
_DEFINITION, _S3_DEFINITION = "PipelineDefinition", "PipelineDefinitionS3Location"
_NOT_IN_CALL = "the call has no definition: create_pipeline and update_pipeline are checked"


class CheckedCall(Struct, frozen=True):
    """A call that was checked. If it could not be, `unknown_because` says why.

    `subject` is what the call is about, such as `training job resnet-1`, and `verb` what happens to
    it. `unpriced_steps` has a sentence for each step of a pipeline whose cost is not known.
    """

    subject: str
    verb: str
    checked: CheckedFile | None = None
    unknown_because: str = ""
    unpriced_steps: tuple[str, ...] = ()
    history_problem: str | None = None

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """The jobs of the call, without the training jobs of a tuning job."""
        return [job for job in self.checked["jobs"] if not job["trial"]] if self.checked else []

    @property
    def cost(self) -> CallCost:
        """What the jobs of the call cost together."""
        if self.checked is None:
            return CallCost(None, "", (self.unknown_because,))
        cost = call_cost(self.jobs)
        return replace(cost, unknown_reasons=(*cost.unknown_reasons, *self.unpriced_steps))

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The findings of all jobs that count, the most important first."""
        jobs = self.checked["jobs"] if self.checked else []
        return sort_rows(row for job in jobs for row in counted_findings(job))


class CallChecker:
    """Checks calls with the same policy and history. Threads may share it."""

    def __init__(self, checker: RequestChecker, history: History | None) -> None:
        self._checker = checker
        self._families = FamilyReader(history) if history else None

    def check(
        self, action: str, params: Mapping[str, Any], region: str | None
    ) -> CheckedCall | None:
        """Returns the checked call; None for a call that starts nothing and defines no job.

        `action` is the name of the API action. The parameters are only read.
        """
        if action not in _VERBS or (
            action == "UpdatePipeline" and not params.keys() & {_DEFINITION, _S3_DEFINITION}
        ):
            return None
        kind = _KIND_BY_CALL.get(action)
        label, key = (kind.spec.label, kind.spec.name_key) if kind else ("pipeline", "PipelineName")
        name = cut_middle(for_terminal(str(params.get(key, ""))), _MAX_NAME_LENGTH)
        call = CheckedCall(f"{label} {name}".strip(), _VERBS[action])
        if (reason := _uncheckable_because(kind, params)) is not None:
            return replace(call, unknown_because=reason)
        return self._check(call, FileFormat(kind.value if kind else "pipeline"), params, region)

    def _check(
        self, call: CheckedCall, form: FileFormat, params: Mapping[str, Any], region: str | None
    ) -> CheckedCall:
        reading = self._families.start_call() if self._families else None
        checker = replace(
            self._checker,
            now=datetime.now(UTC),
            form=form,
            region=region or self._checker.region,
            read_family=reading.read if reading else None,
        )
        try:
            checked = check_files.check_mapping(checker, params)
        except SageauditError as error:
            return replace(call, unknown_because=str(error))
        return replace(
            call,
            checked=checked,
            unpriced_steps=unpriced_steps(params) if form is FileFormat.PIPELINE else (),
            history_problem=reading.problem if reading else None,
        )


def _uncheckable_because(kind: JobKind | None, params: Mapping[str, Any]) -> str | None:
    if kind is not None:
        is_checked = kind.value in {form.value for form in FileFormat}
        return None if is_checked else "its request names no instances"
    if _DEFINITION in params:
        return None
    return "its definition is in S3" if _S3_DEFINITION in params else _NOT_IN_CALL


class FamilyReader:
    """Reads families of a history in threads of their own, which no call waits for too long."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._overdue: threading.Thread | None = None

    def start_call(self) -> CallReading:
        """Returns the reading of one call, which may read several families."""
        return CallReading(self)

    def read(self, planned_job: PlannedJob, timeout_s: float) -> FamilyHistory:
        """Reads a family. Raises TimeoutError, at once while an earlier read is still overdue."""
        if self._overdue is not None and self._overdue.is_alive():
            raise TimeoutError
        future: Future[FamilyHistory] = Future()

        def read() -> None:
            try:
                future.set_result(read_family(self._history, planned_job))
            except Exception as error:  # noqa: BLE001 - the waiting thread raises it
                future.set_exception(error)

        # A daemon thread does not keep the interpreter from exiting.
        thread = threading.Thread(target=read, name="sageaudit-history", daemon=True)
        thread.start()
        try:
            return future.result(timeout_s)
        except TimeoutError:
            self._overdue = thread
            raise


class CallReading:
    """The families that one call reads, in one second together. `problem` says what went wrong."""

    def __init__(self, families: FamilyReader) -> None:
        self._families = families
        self._deadline = monotonic() + HISTORY_TIMEOUT_S
        self.problem: str | None = None

    def read(self, planned_job: PlannedJob) -> FamilyHistory | None:
        """Returns the family's history; None after the first problem."""
        if self.problem is not None:
            return None
        try:
            return self._families.read(planned_job, max(self._deadline - monotonic(), 0.0))
        except TimeoutError:
            self.problem = "The history did not answer within one second, so it was not used."
        except Exception as error:  # noqa: BLE001 - a history must not break the call
            self.problem = f"The history was not used: {str(error) or type(error).__name__}."
        return None
