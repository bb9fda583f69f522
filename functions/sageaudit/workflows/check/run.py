"""Finds the requests of a file and judges each, for `sageaudit check`."""

from __future__ import annotations

from collections import defaultdict
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
    guides_for_request,
    plan_job,
)

_MAX_AUDITS = 3
"""How many newest audits a request is compared with. Older recommendations may be outdated."""
FileLines = tuple[Mapping[Path, int], Sequence[Path]]
"""The line of each path in a file, and the paths of keys that occur twice."""


class RequestChecker(Struct, frozen=True):
    """Checks the requests of files.

    `region` and `account` are the user's options. `default_region` returns the region of the AWS
    settings. It is called only if neither the options nor the file name a region. `read_family`
    returns None if the history does not answer in time. `option_format` is how notes name an
    option: as the command line does, or as an argument of Python. `form_option` is the name of the
    option for `form`.
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
    read_family: Callable[[PlannedJob], FamilyHistory | None] | None
    with_guides: bool = False
    option_format: str = "--{}"
    form_option: str = "--as"

    def check_file(
        self, name: str, document: Any, parse_lines: Callable[[], FileLines]
    ) -> CheckedFile:
        """Checks all requests of a file's document. Raises MalformedData if it has none."""
        parsed_file = recognise(
            document,
            self.model,
            form=self.form,
            form_option=self.form_option,
            pipeline=self.pipeline,
        )
        checked_requests = self._check_all(parsed_file.requests)
        lines, repeated_paths = parse_lines()
        repeated_key_sentences = [
            f"{path_text(document, path)} occurs twice (line {lines[path]}): only the last one"
            " counts"
            for path in repeated_paths
        ]
        parsed_file = replace(
            parsed_file,
            unchecked_sentences=(*parsed_file.unchecked_sentences, *repeated_key_sentences),
        )
        return file_document(name, parsed_file, self.model.version, checked_requests, lines)

    def _check_all(self, requests: Sequence[Request]) -> list[CheckedRequest]:
        # A tuning job is checked after its training job definitions, since their costs determine
        # its cost.
        problems = {id(request): find_problems(request, self.model) for request in requests}
        checked_by_id: dict[int, CheckedRequest] = {}
        trial_costs_by_id: defaultdict[int, list[MaxCost]] = defaultdict(list)
        regions = {request.image_region for request in requests} - {None}
        file_region = regions.pop() if len(regions) == 1 else None
        for request in reversed(requests):
            own_problems = problems[id(request)]
            problems_to_remove = (
                own_problems
                if request.tuning_request is None
                else problems[id(request.tuning_request)]
            )
            trial_costs = trial_costs_by_id[id(request)][::-1]
            checked = self._check_one(
                request, own_problems, problems_to_remove, trial_costs, file_region
            )
            checked_by_id[id(request)] = checked
            if request.tuning_request is not None and checked.cost is not None:
                trial_costs_by_id[id(request.tuning_request)].append(checked.cost)
        return [checked_by_id[id(request)] for request in requests]

    def _check_one(
        self,
        request: Request,
        problems: Sequence[Problem],
        problems_to_remove: Sequence[Problem],
        trial_costs: Sequence[MaxCost],
        file_region: str | None,
    ) -> CheckedRequest:
        # `file_region` is the region of all images in the file, for a request without a region.
        region = self.region or request.region or request.image_region
        region = region or file_region or self.default_region()
        try:
            planned_job = plan_job(request, problems_to_remove, region, self.policy)
        except MalformedData as error:
            return CheckedRequest(request, tuple(problems), unreadable=str(error))
        if self.account and planned_job.job.account is None:
            planned_job = replace(planned_job, job=replace(planned_job.job, account=self.account))
        market = self.markets.market(planned_job.job, self.now)
        history, notes = self._history(planned_job)
        checked_request = check_request(
            planned_job,
            problems,
            market,
            self.policy,
            catalogue.ruleset(),
            now=self.now,
            history=history,
            trial_costs=trial_costs,
        )
        guides = (
            guides_for_request(planned_job, history, market.types) if self.with_guides else None
        )
        return replace(checked_request, notes=(*checked_request.notes, *notes), guides=guides)

    def _history(self, planned_job: PlannedJob) -> tuple[FamilyHistory | None, tuple[str, ...]]:
        """Returns the family's history, or None if it cannot be read. Also returns notes that say
        why.
        """
        request, job = planned_job.request, planned_job.job
        if self.read_family is None or request.tuning_request is not None:
            return None, ()
        if request.kind.spec.rollup:
            label = request.kind.spec.label
            return None, (f"Each {label} is a family of its own: no history is read.",)
        missing = [
            f"{name} (give {self.option_format.format(name)})"
            for name, value in (
                ("account", job.account),
                ("region", job.region),
                ("pipeline", request.step or not request.is_pipeline_step),
            )
            if not value
        ]
        if missing:
            return None, (f"The history cannot be read without {' and '.join(missing)}.",)
        return self.read_family(planned_job), ()


def read_family(history: History, planned_job: PlannedJob) -> FamilyHistory:
    """Reads the newest runs and last audits of a planned job's family. Raises AwsError.

    Audits on the same instances come first.
    """
    job = planned_job.job
    query = RunQuery.for_family(
        job.account or UNKNOWN_NAME, job.region or UNKNOWN_NAME, planned_job.family
    )
    summaries = tuple(islice(history.runs(query, page_size=MAX_EARLIER_RUNS), MAX_EARLIER_RUNS))
    group = job.groups[0] if len(job.groups) == 1 else None
    instances = (group.instance_type, group.count) if group else None

    def ran_on_other_instances(summary: AuditSummary) -> bool:
        return instances is None or (summary.instance_type, summary.instance_count) != instances

    documents = (
        read_audit(history, summary.key)
        for summary in sorted(summaries, key=ran_on_other_instances)[:_MAX_AUDITS]
    )
    return FamilyHistory(
        comparable_runs(summaries), tuple(audit for audit in documents if audit is not None)
    )
