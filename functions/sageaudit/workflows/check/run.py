"""The pure core of `sageaudit check`: finds the requests of a file and judges each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from msgspec import Struct

from sageaudit.domain.audit.record import MAX_EARLIER_RUNS, UNKNOWN_NAME, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.request.forecast import MaxCost
from sageaudit.domain.request.recognise import FileFormat, recognise
from sageaudit.domain.request.request import Path, Request, path_text
from sageaudit.domain.request.validity import ApiModel, Problem
from sageaudit.errors import MalformedData
from sageaudit.ports import History, Markets
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit.stored import comparable_runs, read_audit
from sageaudit.workflows.check.document import CheckedFile
from sageaudit.workflows.check.document import document as file_document
from sageaudit.workflows.check.request import (
    CheckedRequest,
    FamilyHistory,
    PlannedJob,
    check_request,
    find_problems,
    plan_job,
    request_guides,
)

_AUDITS = 3
"""How many newest audits a request is compared with: older recommendations may be outdated."""
FileLines = tuple[Mapping[Path, int], Sequence[Path]]
"""The line of each path in a file, and the keys that occur twice."""


class RequestChecker(Struct, frozen=True):
    """How to check files.

    `region` and `account` are the user's options. `default_region` returns the region of the user's
    AWS settings, and is called if nothing else has one.
    """

    policy: Policy
    now: datetime
    form: FileFormat | None
    pipeline: str | None
    model: ApiModel
    markets: Markets
    region: str | None
    account: str | None
    default_region: Callable[[], str | None]
    read_family: Callable[[PlannedJob], FamilyHistory] | None
    with_guides: bool = False

    def check_file(
        self, name: str, document: Any, parse_lines: Callable[[], FileLines]
    ) -> CheckedFile:
        """Checks all requests of a file's document. Raises MalformedData if it has none."""
        parsed = recognise(document, self.model, form=self.form, pipeline=self.pipeline)
        checked = self._check_all(parsed.requests)
        lines, repeated = parse_lines()
        twice = [
            f"{path_text(document, place)} is there twice (line {lines[place]}): only the last one"
            " counts"
            for place in repeated
        ]
        parsed = replace(parsed, unchecked_sentences=(*parsed.unchecked_sentences, *twice))
        return file_document(name, parsed, self.model.version, checked, lines)

    def _check_all(self, requests: Sequence[Request]) -> list[CheckedRequest]:
        """Checks each request: a tuning job after its definitions, whose costs it needs. The result
        has the order of `requests`.
        """
        problems = {id(r): find_problems(r, self.model) for r in requests}
        done: dict[int, CheckedRequest] = {}
        regions = {request.image_region for request in requests} - {None}
        around = regions.pop() if len(regions) == 1 else None
        for request in reversed(requests):
            own = problems[id(request)]
            known = own if request.tuning_request is None else problems[id(request.tuning_request)]
            trials = [
                cost
                for one in requests
                if one.tuning_request is request and (cost := done[id(one)].cost) is not None
            ]
            done[id(request)] = self._check_one(request, own, known, trials, around)
        return [done[id(request)] for request in requests]

    def _check_one(
        self,
        request: Request,
        problems: Sequence[Problem],
        problems_to_remove: Sequence[Problem],
        trials: Sequence[MaxCost],
        file_region: str | None,
    ) -> CheckedRequest:
        """`file_region`: that of all images in the file, for a request without a region."""
        region = self.region or request.region or request.image_region
        region = region or file_region or self.default_region()
        try:
            planned = plan_job(request, problems_to_remove, region, self.policy)
        except MalformedData as error:
            return CheckedRequest(request, tuple(problems), unreadable=str(error))
        if self.account and planned.job.account is None:
            planned = replace(planned, job=replace(planned.job, account=self.account))
        market = self.markets.market(planned.job, self.now)
        history, note = self._history(planned)
        checked = check_request(
            planned,
            problems,
            market,
            self.policy,
            catalogue.ruleset(),
            now=self.now,
            history=history,
            trial_costs=trials,
        )
        guides = request_guides(planned, history, market.types) if self.with_guides else None
        return replace(checked, notes=(*checked.notes, *note), guides=guides)

    def _history(self, planned: PlannedJob) -> tuple[FamilyHistory | None, tuple[str, ...]]:
        """The family's history, or why it cannot be read."""
        request, job = planned.request, planned.job
        if self.read_family is None or request.tuning_request is not None:
            return None, ()
        if request.kind.spec.rollup:
            label = request.kind.spec.label
            return None, (f"Each {label} is a family of its own: its history is not asked.",)
        lacks = [
            f"{what} (give {option})"
            for what, option, value in (
                ("account", "--account", job.account),
                ("region", "--region", job.region),
                ("pipeline", "--pipeline", request.step or not request.is_pipeline_step),
            )
            if not value
        ]
        if lacks:
            return None, (f"The history is not asked without {' and '.join(lacks)}.",)
        return self.read_family(planned), ()


def read_family(history: History, planned: PlannedJob) -> FamilyHistory:
    """Reads the family of a job that has not run: its newest runs in one query, and the last
    audits, those on the same instances first.

    Raises AwsError.
    """
    job = planned.job
    query = RunQuery.for_family(
        job.account or UNKNOWN_NAME, job.region or UNKNOWN_NAME, planned.family
    )
    heads = tuple(islice(history.runs(query, page_size=MAX_EARLIER_RUNS), MAX_EARLIER_RUNS))
    group = job.groups[0] if len(job.groups) == 1 else None
    instances = (group.instance_type, group.count) if group else None

    def ran_on_other_instances(head: AuditSummary) -> bool:
        return instances is None or (head.instance_type, head.instance_count) != instances

    documents = (
        read_audit(history, head.key)
        for head in sorted(heads, key=ran_on_other_instances)[:_AUDITS]
    )
    return FamilyHistory(
        comparable_runs(heads), tuple(audit for audit in documents if audit is not None)
    )
