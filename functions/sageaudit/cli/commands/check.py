"""`sageaudit check`: judges requests of jobs before they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path

import click
from msgspec import Struct

from sageaudit.adapters.aws.accounts import open_session
from sageaudit.adapters.aws.clients import api_model
from sageaudit.adapters.files import request_file
from sageaudit.adapters.history.opened import HistorySource, open_history
from sageaudit.adapters.prices import sources
from sageaudit.cli import options
from sageaudit.cli.messages import echo_json, say, shown
from sageaudit.cli.views import check as views
from sageaudit.domain.audit.record import FAMILY_RUNS, NOT_NAMED, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.ref import REGION
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.request.forecast import Cost
from sageaudit.domain.request.recognise import Form, recognise, refuse
from sageaudit.domain.request.request import Request
from sageaudit.domain.request.validity import Problem
from sageaudit.domain.request.values import path_text
from sageaudit.errors import BadUsage, HistoryFileError, Malformed, NoHistory
from sageaudit.exits import Exit, gravest
from sageaudit.output.terminal.layout import console_for
from sageaudit.ports import History
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit.stored import runs_of, whole_audit
from sageaudit.workflows.check import request as checking
from sageaudit.workflows.check.document import CheckedFile, document
from sageaudit.workflows.check.request import Checked, FamilyHistory, PlannedJob

_EPILOG = """\b
Examples:
  sageaudit check request.json
  sageaudit check request.json --guides
  sageaudit check pipeline.json --region eu-west-1 --fail-on medium
  terraform show -json plan.out | sageaudit check - --fail-on medium
  sageaudit check request.json --table sageaudit --output github"""

_AUDITS = 3
"""The newest audits whose advice is compared with a request: older advice may be outdated."""


class Checks(Struct, frozen=True):
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
    read_family: Callable[[PlannedJob], FamilyHistory] | None
    guides: bool = False

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
        guides = checking.guides_of(one, history, market.types) if self.guides else None
        return replace(checked, notes=(*checked.notes, *note), guides=guides)

    def _history(self, one: PlannedJob) -> tuple[FamilyHistory | None, tuple[str, ...]]:
        """What the history knows of the family, or why it cannot be asked."""
        request, job = one.request, one.job
        if self.read_family is None or request.trial_of is not None:
            return None, ()
        if request.kind.row.rollup:
            label = request.kind.row.label
            return None, (f"Each {label} is a family of its own: its history is not asked.",)
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


def read_family(history: History, planned: PlannedJob) -> FamilyHistory:
    """The family of a job that has not run: its newest runs in one query, and the last audits,
    those of runs on the same instances first.

    Raises AwsError.
    """
    job = planned.job
    query = RunQuery.of_family(job.account or NOT_NAMED, job.region or NOT_NAMED, planned.family)
    heads = tuple(islice(history.runs(query, page_size=FAMILY_RUNS), FAMILY_RUNS))
    group = job.groups[0] if len(job.groups) == 1 else None
    asked = (group.instance_type, group.count) if group else None

    def other(head: AuditSummary) -> bool:
        return asked is None or (head.instance_type, head.instance_count) != asked

    found = (whole_audit(history, head.key) for head in sorted(heads, key=other)[:_AUDITS])
    return FamilyHistory(runs_of(heads), tuple(audit for audit in found if audit is not None))


OUTPUTS = ("table", "json", "github")


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--as",
    "form",
    type=options.EnumChoice(Form),
    help="What the files are; by default it is recognised by what is in them.",
)
@click.option("--pipeline", help="Name of the pipeline, which a definition does not say.")
@click.option(
    "--region",
    help="AWS region of the jobs; by default that of the plan, of the image or of your settings.",
)
@click.option("--account", help="Account of the jobs, where their RoleArn does not say it.")
@options.HISTORY
@options.TABLE
@options.PROFILE
@options.POLICY
@click.option(
    "--output",
    type=click.Choice(OUTPUTS),
    default="table",
    show_default=True,
    help="Format: table for people, json for scripts, github for annotations.",
)
@options.fail_on("a request", " By default a request that AWS refuses fails.")
@options.GUIDES
@options.NO_COLOR
def check(
    files: tuple[str, ...],
    form: Form | None,
    pipeline: str | None,
    region: str | None,
    account: str | None,
    history: Path | None,
    table: str | None,
    profile: str | None,
    policy: Policy,
    output: str,
    fail_on: Severity | None,
    guides: bool,
    no_color: bool,
) -> Exit:
    """Checks a request, pipeline or plan before it costs anything.

    FILE is the request of a training, processing, transform or tuning job (as `aws sagemaker
    create-training-job --cli-input-json` takes it), a SageMaker pipeline definition, or a Terraform
    plan (`terraform show -json`); "-" reads standard input. Nothing is asked of AWS but the
    history's table, if you name one.
    """
    if guides and output == "github":
        raise BadUsage("--guides cannot be used with --output github, which has findings alone")
    with _history(history, table, profile, region) as known:
        checks = Checks(
            policy=policy,
            now=datetime.now(UTC),
            form=form,
            pipeline=pipeline,
            region=_region(region),
            account=options.account_id(account, "--account") if account else None,
            settings_region=lambda: open_session(profile, None).region_name,
            read_family=partial(read_family, known.history) if known else None,
            guides=guides,
        )

        def show(checked: CheckedFile) -> Exit:
            _show(checked, output, no_color=no_color)
            return _gate(checked, fail_on)

        return gravest(shown(partial(checks.file, path), show) for path in dict.fromkeys(files))


@contextmanager
def _history(
    history: Path | None, table: str | None, profile: str | None, region: str | None
) -> Iterator[HistorySource | None]:
    """The history that is named; without a name the user's own file, if it can be read."""
    try:
        source = open_history(history, table, profile, region, warn=say)
    except HistoryFileError as error:
        if history is not None:
            raise
        if not isinstance(error, NoHistory):
            say(f"{error}; the history is not asked")
        yield None
        return
    with source:
        yield source


def _region(name: str | None) -> str | None:
    if name is not None and not REGION.fullmatch(name):
        raise BadUsage(f"--region {name} is not a region; a region looks like eu-west-1")
    return name


def _gate(written: CheckedFile, fail_on: Severity | None) -> Exit:
    """A request that AWS refuses fails, unless the user names a severity."""
    rows = [row for job in written["jobs"] for row in job["findings"]]
    if fail_on is None:
        refused = any(row["refused"] and row["not_counted"] is None for row in rows)
        return Exit.FINDINGS if refused else Exit.DONE
    counted = (row["severity"] for row in rows if row["not_counted"] is None)
    known = not any(job["unreadable"] for job in written["jobs"])
    return options.gate(written["file"], counted, fail_on, could_judge=known)


def _show(written: CheckedFile, output: str, *, no_color: bool) -> None:
    """Prints a file's document in one format."""
    if output == "json":
        echo_json(written)
    elif output == "table":
        views.show(written, console_for(no_color=no_color))
    elif text := views.github(written):
        click.echo(text)
