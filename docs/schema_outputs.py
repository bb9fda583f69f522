"""The shapes of what commands print with --output json, beside the audit."""

from __future__ import annotations

from docs.schema_of_types import Definitions, Schema
from sageaudit.cli.views.type_rates import TypeRate
from sageaudit.domain.audit.document import (
    FindingDocument,
    NotApplicableDocument,
    UnknownDocument,
)
from sageaudit.domain.audit.policy_diff import FindingMove, RuleMoves
from sageaudit.domain.job.kinds import Component, JobKind
from sageaudit.domain.usage.measurements import Metric
from sageaudit.rules.card import Threshold

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_FLAG: Schema = {"type": "boolean"}
_AMOUNT: Schema = {"type": ["number", "null"]}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_TEXTS: Schema = {"type": "array", "items": _TEXT}


def _keys(**keys: Schema) -> Schema:
    """An object that always has all of these keys."""
    return {"type": "object", "properties": keys, "required": list(keys)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _document(**keys: Schema) -> Schema:
    return _keys(schema={"const": 1}, **keys)


def account(found: Definitions) -> Schema:
    """`sageaudit account`."""
    return _document(
        account=_TEXT_OR_NULL,
        days=_COUNT,
        runs=_COUNT,
        runs_judged=_keys(yes=_COUNT, partly=_COUNT, no=_COUNT, unknown=_COUNT),
        runs_at_estimated_rates=_COUNT,
        runs_with_incomplete_bills=_COUNT,
        findings=_list(found.of(FindingDocument)),
        unknown=_list(found.of(UnknownDocument)),
        not_applicable=_list(found.of(NotApplicableDocument)),
        clear=_TEXTS,
    )


def replay(found: Definitions) -> Schema:
    """`sageaudit replay`."""
    return _document(
        runs=_COUNT,
        not_kept=_COUNT,
        tuning_jobs_left_out=_COUNT,
        not_judged=_COUNT,
        rules=_list(found.of(RuleMoves)),
        findings=_list(found.of(FindingMove)),
    )


def rules(found: Definitions) -> Schema:
    """`sageaudit rules`: all of them, or one with its page."""
    card = _keys(
        id=_TEXT,
        name=_TEXT,
        title=_TEXT,
        looks_at=_TEXT,
        kinds=_list({"enum": [kind.value for kind in JobKind]}),
        on=_FLAG,
        in_chat=_FLAG,
        once_a_family=_FLAG,
        needs=_list({"enum": [metric.value for metric in Metric]}),
        min_active_minutes={"type": ["integer", "null"]},
        min_earlier_runs={"type": ["integer", "null"]},
        includes=_TEXTS,
        thresholds=_list(found.of(Threshold)),
    )
    page = {**card, "properties": {**card["properties"], "page": _TEXT}}
    both = {"schema": {"const": 1}, "rules": _list(card), "rule": page}
    return {
        "type": "object",
        "properties": both,
        "oneOf": [{"required": ["schema", "rules"]}, {"required": ["schema", "rule"]}],
    }


def prices(found: Definitions) -> Schema:
    """`sageaudit prices show`."""
    return _document(rates=_list(found.of(TypeRate)))


def prices_coverage(_: Definitions) -> Schema:
    """`sageaudit prices coverage`: counts of instance types."""
    counts = _keys(**{component.value: _COUNT for component in Component})
    regions = {"type": "object", "additionalProperties": counts}
    return _document(as_of=_TEXT, types=counts, priced=regions, estimated=regions)


def what_if(_: Definitions) -> Schema:
    """`sageaudit what-if`."""
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
        would_hold=_FLAG,
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
        today=_keys(
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
