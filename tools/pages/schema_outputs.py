"""The schemas of what commands print with --output json, except the audit."""

from __future__ import annotations

from sageaudit.cli.views import lists
from sageaudit.cli.views.formats import FieldKind, ListLayout
from sageaudit.cli.views.instance_rates import TypeRate
from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.audit.finding_document import (
    FindingDocument,
    FixDocument,
    NotApplicableDocument,
    UnknownDocument,
)
from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.domain.guides import GuideDocument
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.reconcile.reconcile import Presence
from sageaudit.domain.usage.measurements import Metric
from sageaudit.queries.columns import TAG_PREFIX
from sageaudit.rules.card import Threshold
from sageaudit.workflows.check.document import CheckedFile, CheckFinding
from sageaudit.workflows.redrive import LetterKind, LetterStatus
from sageaudit.workflows.scan.lanes import ScanResult
from tools.pages.schema_of_types import Definitions, Schema

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_FLAG: Schema = {"type": "boolean"}
_AMOUNT: Schema = {"type": ["number", "null"]}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_TEXTS: Schema = {"type": "array", "items": _TEXT}


def _keys(**keys: Schema) -> Schema:
    """Returns the schema of an object that always has all of these keys."""
    return {"type": "object", "properties": keys, "required": list(keys)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _document(**keys: Schema) -> Schema:
    return _keys(schema={"const": 1}, **keys)


def account(definitions: Definitions) -> Schema:
    """Returns the schema of `sageaudit account`."""
    return _document(
        account=_TEXT_OR_NULL,
        days=_COUNT,
        runs=_COUNT,
        runs_judged=_keys(yes=_COUNT, partly=_COUNT, no=_COUNT, unknown=_COUNT),
        runs_at_estimated_rates=_COUNT,
        runs_with_incomplete_bills=_COUNT,
        runs_with_upper_bounds=_COUNT,
        findings=_list(definitions.schema_of(FindingDocument)),
        unknown=_list(definitions.schema_of(UnknownDocument)),
        not_applicable=_list(definitions.schema_of(NotApplicableDocument)),
        clear=_TEXTS,
    )


def redrive(_: Definitions) -> Schema:
    """Returns the schema of `sageaudit redrive`: the selected letters, and what happened to
    each.
    """
    moment: Schema = {"type": "string", "format": "date-time"}
    letter = _keys(
        message_id=_TEXT,
        subject=_TEXT_OR_NULL,
        version={"type": ["integer", "null"]},
        channel=_TEXT_OR_NULL,
        reason=_TEXT,
        why=_TEXT,
        first_sent_at=moment,
        deleted_at=moment,
        status={"enum": [status.value for status in LetterStatus]},
        note=_TEXT_OR_NULL,
    )
    return _document(
        kind={"enum": [kind.value for kind in LetterKind]},
        dry_run=_FLAG,
        error=_TEXT_OR_NULL,
        more=_FLAG,
        other_reasons=_COUNT,
        counts=_keys(**{status.value: _COUNT for status in LetterStatus}),
        letters=_list(letter),
    )


def rules(definitions: Definitions) -> Schema:
    """Returns the schema of `sageaudit rules`: all rules, or one rule with its page."""
    card = _keys(
        id=_TEXT,
        name=_TEXT,
        title=_TEXT,
        scope=_TEXT,
        kinds=_list({"enum": [kind.value for kind in JobKind]}),
        on=_FLAG,
        sent_to_channels=_FLAG,
        report_once_per_family=_FLAG,
        needs=_list({"enum": [metric.value for metric in Metric]}),
        min_active_minutes={"type": ["integer", "null"]},
        min_earlier_runs={"type": ["integer", "null"]},
        includes=_TEXTS,
        thresholds=_list(definitions.schema_of(Threshold)),
    )
    page = {**card, "properties": {**card["properties"], "page": _TEXT}}
    properties = {"schema": {"const": 1}, "rules": _list(card), "rule": page}
    return {
        "type": "object",
        "properties": properties,
        "oneOf": [{"required": ["schema", "rules"]}, {"required": ["schema", "rule"]}],
    }


def prices(definitions: Definitions) -> Schema:
    """Returns the schema of `sageaudit prices show`."""
    return _document(rates=_list(definitions.schema_of(TypeRate)))


def what_if(_: Definitions) -> Schema:
    """Returns the schema of `sageaudit what-if`."""
    kind = {"enum": ["list", "own", "estimate", None]}
    candidate = _keys(
        type=_TEXT,
        vcpu=_COUNT,
        memory_gib={"type": "number"},
        gpus=_COUNT,
        gpu=_TEXT_OR_NULL,
        usd_per_hour=_AMOUNT,
        price_as_of=_TEXT_OR_NULL,
        price_kind=kind,
        price_note=_TEXT_OR_NULL,
        estimated=_FLAG,
        fits=_FLAG,
        feasible_unpriced=_FLAG,
        constraint=_TEXT_OR_NULL,
        reason=_TEXT_OR_NULL,
        assumption=_TEXT_OR_NULL,
        times_as_long=_AMOUNT,
        times_as_long_at_best=_AMOUNT,
        hours=_AMOUNT,
        usd=_AMOUNT,
        saving_usd=_AMOUNT,
        saving_range_usd={"type": ["array", "null"], "items": {"type": "number"}},
        break_even_times_as_long=_AMOUNT,
    )
    needs = _keys(
        vcpu=_AMOUNT,
        memory_gib=_AMOUNT,
        gpus=_AMOUNT,
        gpu_memory_gib=_AMOUNT,
        gpu_busy_percent=_AMOUNT,
        unknown={"type": "object", "additionalProperties": _TEXT},
    )
    return _document(
        job=_keys(
            name=_TEXT,
            arn=_TEXT_OR_NULL,
            kind={"enum": [kind.value for kind in JobKind]},
            status=_TEXT,
            region=_TEXT_OR_NULL,
        ),
        current=_keys(
            instances=_TEXT_OR_NULL,
            hours=_AMOUNT,
            usd=_AMOUNT,
            basis=_TEXT,
            missing=_TEXTS,
            estimated=_TEXTS,
        ),
        headroom_percent={"type": "number"},
        needs={"anyOf": [needs, {"type": "null"}]},
        impossible=_TEXT_OR_NULL,
        notes=_TEXTS,
        candidates=_list(candidate),
    )


_KINDS: dict[FieldKind, Schema] = {
    "text": _TEXT_OR_NULL,
    "usd": _AMOUNT,
    "count": {"type": ["integer", "null"]},
    "percent": _AMOUNT,
    "time": {"type": ["string", "null"], "format": "date-time"},
    "day": {"type": ["string", "null"], "format": "date"},
    "flag": {"type": ["boolean", "null"]},
    "seconds": {"type": ["integer", "null"]},
    "hours": _AMOUNT,
}


def rows(_: Definitions) -> Schema:
    """Returns the schema of lists: `history`, `top`, `by`, `changes` and `budgets`."""
    listings = {
        name.title(): layout
        for name, layout in vars(lists).items()
        if isinstance(layout, ListLayout)
    }
    list_schemas = [_list({"$ref": f"#/$defs/{name}"}) for name in listings]
    return {
        **_document(
            rows={"anyOf": list_schemas},
            more={**_FLAG, "description": "Whether there are rows beyond --limit."},
            read=_keys(rows=_COUNT, sums=_COUNT),
        ),
        "$defs": {name: _row(listing) for name, listing in listings.items()},
    }


def _row(listing: ListLayout) -> Schema:
    return {
        "type": "object",
        "description": "All fields of the list, or those that --fields names.",
        "properties": {field.name: _KINDS[field.kind] for field in listing.fields},
        "patternProperties": {f"^{TAG_PREFIX}": _TEXT_OR_NULL},
        "additionalProperties": False,
        "minProperties": 1,
    }


def scan(definitions: Definitions) -> Schema:
    """Returns the schema of `sageaudit scan`; `scan_plan` is that of --dry-run."""
    reasons = _list(_keys(reason=_TEXT, jobs=_COUNT))
    results = _keys(**{result.value: _COUNT for result in ScanResult}, left=_COUNT)
    sums = {
        key: value for key, value in _amounts_or_null(definitions, Sums).items() if key != "rules"
    }
    sums["spend_qualifier"] = {"enum": [word.value for word in SpendQualifier]}
    definitions.schemas.pop("RuleSums")
    named = _keys(name=_TEXT_OR_NULL, **sums)
    fix = _keys(
        job=_TEXT,
        ended_at={"type": "string", "format": "date-time"},
        rule=_TEXT,
        summary=_TEXT,
        bucket=_TEXT,
        saving_usd=_AMOUNT,
        fix=_list(definitions.schema_of(FixDocument)),
    )
    fix_or_null = {"anyOf": [fix, {"type": "null"}]}
    places = _list(_keys(account=_TEXT, region=_TEXT))
    family = _keys(**{**named["properties"], "places": places, "fix": fix_or_null})
    rule_sums = _amounts_or_null(definitions, RuleSums)
    rule = _keys(
        rule=_TEXT,
        **{key.replace("_range_usd", "_up_to_usd"): value for key, value in rule_sums.items()},
    )
    ranking = _keys(
        since={"type": "string", "format": "date"},
        until={"type": "string", "format": "date"},
        total=_keys(**sums),
        families=_list(family),
        family_count=_COUNT,
        rules=_list(rule),
        owners=_list(named),
        owner_count=_COUNT,
        types=_list(named),
        type_count=_COUNT,
    )
    scan_result = _keys(
        jobs=results,
        metrics_requested=_COUNT,
        cost_usd={"type": "number"},
        refused=reasons,
        not_judged=reasons,
    )
    return _document(scan=scan_result, ranking=ranking)


def _amounts_or_null(definitions: Definitions, form: type[Sums | RuleSums]) -> dict[str, Schema]:
    """Returns the properties of sums, in which amounts may be unknown."""
    properties = _inside(definitions, form)
    return {key: _AMOUNT if key.endswith("_usd") else value for key, value in properties.items()}


def scan_plan(_: Definitions) -> Schema:
    """Returns the schema of `sageaudit scan --dry-run`."""
    place = _keys(account=_TEXT, region=_TEXT, kind=_TEXT, jobs=_COUNT)
    return _document(
        listed=_list(place),
        jobs=_keys(to_audit=_COUNT, running=_COUNT, known=_COUNT),
        metrics=_COUNT,
        cost_usd={"type": "number"},
        least_s=_COUNT,
    )


def _inside(definitions: Definitions, shape: type) -> dict[str, Schema]:
    """Returns the properties of a type, to be merged with others."""
    definitions.schema_of(shape)
    keys: dict[str, Schema] = definitions.schemas.pop(shape.__name__)["properties"]
    return keys


def guides(definitions: Definitions) -> Schema:
    """Returns the schema of the guides of a job or request, which exist only with --guides."""
    return _list(definitions.schema_of(GuideDocument))


def check(definitions: Definitions) -> Schema:
    """Returns the schema of `sageaudit check`, of the document for one file."""
    schema = definitions.schema_of(CheckedFile)
    job = {
        "type": "object",
        "properties": {
            "findings": _list(definitions.schema_of(CheckFinding)),
            "guides": guides(definitions),
        },
        "required": ["label", "kind", "cost", "findings"],
    }
    definitions.schemas["CheckedFile"]["properties"]["jobs"] = _list(job)
    keys = definitions.schemas["CheckedFile"]["properties"]
    keys["schema"] = {"const": 1}
    keys["base"] = {
        "description": "The check of the earlier version; only with --base.",
        "anyOf": [schema, {"type": "null"}],
    }
    return schema


def reconcile(_: Definitions) -> Schema:
    """Returns the schema of `sageaudit reconcile`."""
    places = {"enum": [presence.value for presence in Presence]}
    row = _keys(
        usage=_TEXT,
        region=_TEXT_OR_NULL,
        job=_TEXT_OR_NULL,
        area=_TEXT_OR_NULL,
        place=places,
        unit=_TEXT_OR_NULL,
        **{
            f"{side}_{measure}": _AMOUNT
            for side in ("aws", "history")
            for measure in ("quantity", "usd")
        },
        **{
            f"{measure}_{comparison}": _AMOUNT
            for measure in _COMPARED
            for comparison in ("difference", "percent")
        },
        jobs=_COUNT,
        jobs_across_months=_COUNT,
        history_estimated=_FLAG,
    )
    totals = _keys(**dict.fromkeys(_TOTALS, _AMOUNT))
    counts: Schema = {"type": "object", "additionalProperties": _COUNT}
    return _document(
        month=_TEXT,
        account=_TEXT_OR_NULL,
        source=_TEXT,
        totals=totals,
        jobs=counts,
        rows=_list(row),
        excluded=_list(_keys(kind=_TEXT, lines=_COUNT, usd=_AMOUNT)),
        excluded_audits={"type": "object", "additionalProperties": _COUNT},
        estimated_lines=_COUNT,
        managed_spot_usage_types=_TEXTS,
        notes=_TEXTS,
    )


_COMPARED = ("quantity", "usd")
_TOTALS = (
    *("aws_usd", "matched_aws_usd", "matched_aws_percent", "only_in_aws_usd", "history_usd"),
    *("matched_history_usd", "only_in_history_usd", "not_comparable_usd", "outside_audits_usd"),
    *("outside_audits_percent", "jobs_only_in_aws_usd", "jobs_only_in_aws_percent"),
    "estimated_history_usd",
)
