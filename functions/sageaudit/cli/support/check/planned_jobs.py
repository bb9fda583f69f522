"""Checks the requests in a file, with packaged prices and the history of their families."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sageaudit.adapters.aws.clients import api_model
from sageaudit.adapters.files import request_file
from sageaudit.adapters.prices import sources
from sageaudit.cli.support.check.document import CheckedFile, document
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.request.forecast import Cost
from sageaudit.domain.request.recognise import Form, recognise, refuse
from sageaudit.domain.request.request import Request
from sageaudit.domain.request.validity import Problem
from sageaudit.domain.request.values import path_text
from sageaudit.errors import BadUsage, Malformed
from sageaudit.rules import catalogue
from sageaudit.workflows.check import run as checking
from sageaudit.workflows.check.run import Checked, FamilyHistory, PlannedJob

ReadFamily = Callable[[PlannedJob], FamilyHistory]
"""Returns what the history knows of a job's family."""


@dataclass(frozen=True, slots=True)
class Checks:
    """How to check files.

    `region` and `account` are those that the user names; `settings_region` is asked for the region
    of the user's AWS settings, where nothing else says it.
    """

    policy: Policy
    now: datetime
    form: Form | None
    pipeline: str | None
    region: str | None
    account: str | None
    settings_region: Callable[[], str | None]
    read_family: ReadFamily | None

    def file(self, path: str) -> CheckedFile:
        """All requests of a file. Raises BadUsage, naming the file, for one that is none."""
        model = api_model()
        try:
            read = request_file.read(path, refuse)
            found = recognise(read.document, model, form=self.form, pipeline=self.pipeline)
            checked = self._all(found.requests)
            lines, repeated = read.lines()
            twice = [
                f"{path_text(read.document, place)} is there twice (line {lines[place]}): only the "
                "last one counts"
                for place in repeated
            ]
            found = replace(found, left_out=(*found.left_out, *twice))
            return document(read.name, found, model.version, checked, lines)
        except Malformed as error:
            raise BadUsage(f"{request_file.name_of(path)}: {error}") from error
        except RecursionError as error:
            name = request_file.name_of(path)
            raise BadUsage(f"{name}: {request_file.TOO_DEEP}") from error

    def _all(self, requests: Sequence[Request]) -> list[Checked]:
        """Each request; a tuning job after its definitions, whose costs it needs, but before them
        in the list.
        """
        model = api_model()
        problems = {id(r): checking.problems_of(r, model) for r in requests}
        done: dict[int, Checked] = {}
        regions = {request.region_of_image for request in requests} - {None}
        around = regions.pop() if len(regions) == 1 else None
        for request in reversed(requests):
            own = problems[id(request)]
            known = own if request.trial_of is None else problems[id(request.trial_of)]
            trials = [
                cost
                for one in requests
                if one.trial_of is request and (cost := done[id(one)].cost) is not None
            ]
            done[id(request)] = self._one(request, own, known, trials, around)
        return [done[id(request)] for request in requests]

    def _one(
        self,
        request: Request,
        own: Sequence[Problem],
        known: Sequence[Problem],
        trials: Sequence[Cost],
        around: str | None,
    ) -> Checked:
        """`around`: the region of all images of the file; one without runs there too."""
        region = self.region or request.region or request.region_of_image
        region = region or around or self.settings_region()
        try:
            one = checking.prepare(request, known, region, self.policy)
        except Malformed as error:
            return Checked(request, tuple(own), unreadable=str(error))
        if self.account and one.job.account is None:
            one = replace(one, job=replace(one.job, account=self.account))
        market = sources.offline_markets().market(one.job, self.now)
        history, note = self._history(one)
        checked = checking.check(
            one,
            own,
            market,
            self.policy,
            catalogue.ruleset(),
            now=self.now,
            history=history,
            trials=trials,
        )
        return replace(checked, notes=(*checked.notes, *note))

    def _history(self, one: PlannedJob) -> tuple[FamilyHistory | None, tuple[str, ...]]:
        """What the history knows of the family, or why it cannot be asked."""
        request, job = one.request, one.job
        if self.read_family is None or request.trial_of is not None:
            return None, ()
        if request.kind is JobKind.TUNING:
            return None, ("Each tuning job is a family of its own: its history is not asked.",)
        lacks = [
            f"{what} (give {option})"
            for what, option, value in (
                ("account", "--account", job.account),
                ("region", "--region", job.region),
                ("pipeline", "--pipeline", request.step or not request.of_pipeline),
            )
            if not value
        ]
        if lacks:
            return None, (f"The history is not asked without {' and '.join(lacks)}.",)
        return self.read_family(one), ()
