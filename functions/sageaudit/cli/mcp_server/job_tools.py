"""The tools about one job: its audit, other types for it, and its request before it runs."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Any

from msgspec import Meta

from sageaudit.adapters.history.opened import HistorySource
from sageaudit.adapters.prices import packaged, sources
from sageaudit.cli import clock
from sageaudit.cli.mcp_server.answer import (
    MONEY_NOTE,
    Answer,
    Arguments,
    Name,
    ServedHistory,
    Tool,
    choose_keys,
    make_command,
    option_words,
)
from sageaudit.cli.views.check import terminal
from sageaudit.cli.views.what_if import at_own_prices, check_types, what_if_document
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.domain.request.recognise import FileFormat
from sageaudit.domain.usage.packing import unpack
from sageaudit.errors import BadUsage, SageauditError
from sageaudit.output.terminal import candidates
from sageaudit.output.terminal.layout import printed_text
from sageaudit.output.terminal.render import render
from sageaudit.output.text.amounts import COLUMN_TITLES, document_amounts
from sageaudit.output.text.finding import make_finding_parts
from sageaudit.output.text.headline import headline
from sageaudit.queries.names import JobQuery, find_job
from sageaudit.structs import replace
from sageaudit.workflows import check_files
from sageaudit.workflows.audit.stored import require_audit, stored_run
from sageaudit.workflows.check.comparison import FileCheck
from sageaudit.workflows.recordings.jobs import MeasuredJob

_STORED_NOTE = (
    "From the measurements of the history, which are rounded to tenths of a percent, so cents may"
    " differ from the audit. The command reads the job from AWS."
)
_WIDTH = 100
_MAX_CHILDREN = 10
_MAX_CANDIDATES = 8
_AUDIT_KEYS = (
    *("schema", "judged", "not_judged", "avoidable_usd", "lost_usd", "lost_up_to_usd"),
    *("possible_usd", "idle_capacity", "rollup", "unauditable"),
)
_JOB_KEYS = (
    *("name", "arn", "kind", "status", "account", "region", "family", "owner", "created_at"),
    *("started_at", "ended_at", "instances", "purchase", "tags"),
)
_BILL_KEYS = (
    *("total_usd", "spend_qualifier", "complete", "missing", "estimated", "basis"),
    "price_kind",
)
_FINDING_KEYS = (
    *("rule", "id", "severity", "confidence", "bucket", "summary", "saving_usd"),
    *("saving_range_usd", "fix", "first_step", "caution"),
)
_REQUEST_KEYS = (
    *("name", "label", "kind", "account", "region", "family", "instances", "cost"),
    *("history", "findings", "unreadable", "notes", "note"),
)
_JobName = Annotated[Name, Meta(description="The job's name or ARN.", min_length=1)]


class ShowAudit(Arguments, frozen=True):
    """Shows one job's audit: what it cost, what was avoidable or lost and why, and what to
    change.
    """

    job: _JobName


def show_audit(served: ServedHistory, arguments: ShowAudit) -> Answer:
    """Answers as `sageaudit show` does."""
    notes: list[str] = []
    with served.choice.open(notes.append) as source:
        summary = find_job(source.history, JobQuery(arguments.job))
        document = require_audit(source.history, summary)
    return Answer(
        printed_text(partial(render, document), _WIDTH),
        short_audit(document),
        served.command("show", summary.key.arn, "--output", "json"),
        [*notes, MONEY_NOTE],
        is_shortened=True,
    )


def short_audit(document: AuditDocument) -> dict[str, Any]:
    """Returns the job, its costs, its findings with their fixes, and a roll-up's first jobs."""
    amounts = zip(COLUMN_TITLES, map(str, document_amounts(document)), strict=True)
    children = [short_audit(child) for child in (document["children"] or ())[:_MAX_CHILDREN]]
    return {
        **choose_keys(document, _AUDIT_KEYS),
        "job": choose_keys(document["job"], _JOB_KEYS),
        "headline": headline(document) if document["unauditable"] is None else None,
        "amounts": dict(amounts),
        "bill": choose_keys(document["bill"], _BILL_KEYS),
        "findings": [*map(_short_finding, document["findings"])],
        "children": children or None,
    }


def _short_finding(finding: FindingDocument) -> dict[str, Any]:
    parts = make_finding_parts(finding)
    return {
        **choose_keys(finding, _FINDING_KEYS),
        "dollars": parts.dollars,
        "not_counted_because": parts.not_counted_because,
    }


class WhatIf(Arguments, frozen=True):
    """Shows what a job of the history would have cost on other instance types that are large enough
    for what it used.
    """

    job: _JobName
    types: Annotated[
        tuple[Name, ...],
        Meta(max_length=50, description="Only these instance types; by default all."),
    ] = ()


def what_if(served: ServedHistory, arguments: WhatIf) -> Answer:
    """Answers as `sageaudit what-if` does."""
    check_types(arguments.types)
    notes: list[str] = []
    with served.choice.open(notes.append) as source:
        run, series_note = _stored_measurements(source, arguments.job)
    document = what_if_document(at_own_prices(run, served.policy), arguments.types)
    shown = document["candidates"][: len(arguments.types) or _MAX_CANDIDATES]
    words = [word for name in arguments.types for word in ("--type", name)]
    words += option_words({"--policy": served.policy_path, "--profile": served.choice.profile})
    text = printed_text(partial(candidates.show, document), _WIDTH)
    return Answer(
        text,
        {**document, "candidates": shown},
        make_command("what-if", run.job.arn or run.job.name, *words, "--output", "json"),
        [*notes, *filter(None, [series_note]), _STORED_NOTE, MONEY_NOTE],
        len(shown) < len(document["candidates"]),
    )


def _stored_measurements(source: HistorySource, name: str) -> tuple[MeasuredJob, str | None]:
    """Returns a job with its stored measurements, at packaged prices, and what they lack.

    Raises BadUsage if the history has none, and JobNotFound.
    """
    summary = find_job(source.history, JobQuery(name))
    if summary.rollup:
        raise BadUsage(f"{summary.job} is a tuning or AutoML job: name one of its jobs")
    stored = stored_run(summary, source.history)
    if stored is None:
        raise BadUsage(
            f"the measurements of {summary.job} are not in this history, which keeps them for 90"
            f" days: `sageaudit what-if {summary.key.arn}` reads them from AWS"
        )
    job, detail = stored
    usage = unpack(detail.series, job, packaged.instance_types())
    now = clock.utc_now()
    return MeasuredJob(job, usage, sources.offline_markets().market(job, now), now), detail.note


class CheckRequest(Arguments, frozen=True):
    """Checks the request of a job, pipeline, template or plan before it costs anything: what AWS
    would refuse, what it may cost at most, and what to change.
    """

    request: Annotated[
        dict[str, Any] | str,
        Meta(
            description="The request of a training, processing, transform or tuning job as boto3"
            " takes it, a SageMaker pipeline, a Step Functions state machine, a CloudFormation"
            " template or a Terraform plan: a JSON object, or its text."
        ),
    ]
    region: Annotated[Name, Meta(description="The jobs' region, if the request names none.")] = ""
    account: Annotated[Name, Meta(description="The jobs' account, if RoleArn names none.")] = ""
    pipeline: Annotated[Name, Meta(description="The name of the pipeline.")] = ""
    form: Annotated[
        Name,
        Meta(
            description='The format of the request; "": recognised from its keys.',
            extra_json_schema={"enum": ["", *FileFormat]},
        ),
    ] = ""


def check_request(served: ServedHistory, arguments: CheckRequest) -> Answer:
    """Answers as `sageaudit check` does."""
    request = arguments.request
    if isinstance(request, str):
        try:
            request = json.loads(request)
        except (ValueError, RecursionError) as error:
            raise BadUsage(f"the request is not JSON: {error}") from error
    if not isinstance(request, dict):
        raise BadUsage("the request is not a JSON object")
    if arguments.form not in {"", *FileFormat}:
        raise BadUsage(f"there is no form {arguments.form}: there are {', '.join(FileFormat)}")
    notes: list[str] = []
    source = _open_or_note(served, notes)
    try:
        checker = check_files.make_checker(
            served.policy,
            source.history if source else None,
            form=FileFormat(arguments.form) if arguments.form else None,
            region=arguments.region or None,
            account=arguments.account or None,
            pipeline=arguments.pipeline or None,
            profile=served.choice.profile,
        )
        checker = replace(checker, option_format="the argument {}", form_option="the argument form")
        checked = check_files.check_mapping(checker, request)
    finally:
        if source:
            source.close()
    text = printed_text(partial(terminal.show, FileCheck(checked["file"], checked)), _WIDTH)
    return Answer(
        text.partition("\n")[2].lstrip(),  # without the line of the file's name
        {**checked, "jobs": [choose_keys(job, _REQUEST_KEYS) for job in checked["jobs"]]},
        _check_command(served, arguments),
        [*notes, MONEY_NOTE],
        is_shortened=True,
    )


def _check_command(served: ServedHistory, arguments: CheckRequest) -> str:
    # The region of the jobs is also that of the table.
    options = {
        "--region": arguments.region,
        "--account": arguments.account,
        "--pipeline": arguments.pipeline,
        "--as": arguments.form,
        "--policy": served.policy_path,
    }
    region = arguments.region or served.choice.table_region
    choice = replace(served.choice, table_region=None)
    words = option_words({**options, "--region": region})
    return replace(served, choice=choice).command("check", "FILE", *words, "--output", "json")


def _open_or_note(served: ServedHistory, notes: list[str]) -> HistorySource | None:
    try:
        return served.choice.open(notes.append)
    except SageauditError as error:
        notes.append(f"the history is not used: {error}")
        return None


JOB_TOOLS = (
    Tool("One job's audit", ShowAudit, show_audit),
    Tool("A job on other instance types", WhatIf, what_if),
    Tool("Check a request before it runs", CheckRequest, check_request),
)
