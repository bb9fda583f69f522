"""The JSON Schema of a recording, as `adapters/files/recording.py` reads it."""

from __future__ import annotations

from typing import Any

from sageaudit.domain.job.kinds import JobKind

_TIME = {"type": ["string", "number"]}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_REGION = {"type": "string", "pattern": "^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$"}
_STATUS = {"type": "string", "minLength": 1}
_PREFIXES = [kind.spec.prefix for kind in JobKind]

_POINT = {"type": ["number", "null"]}
_SERIES = {
    "type": "object",
    "description": "One metric of one host, as CloudWatch returned it.",
    "properties": {
        "host": {
            "type": "string",
            "description": "JOB/algo-1; of an algorithm metric, the job's name.",
        },
        "metric": {"type": "string", "description": "CloudWatch's name: CPUUtilization, ..."},
        "start": {**_TIME, "description": "The start of the first period; ISO 8601 or epoch."},
        "period_s": {"type": "integer", "minimum": 1, "description": "In seconds."},
        "stat": {
            "type": "string",
            "description": "Average; series of other statistics are not read.",
        },
        "values": {
            "type": "array",
            "items": _POINT,
            "maxItems": 1_000_000,
            "description": "One value for each period, a sum over cores or GPUs; null for a gap.",
        },
    },
    "required": ["host", "metric", "start", "values"],
}
_RATE = {
    "type": "object",
    "description": "A rate in USD, or why there is none.",
    "properties": {
        "usd": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"},
        "effective": {"type": ["string", "null"], "format": "date"},
        "usage_type": {"type": "string"},
        "refused": {"type": "string"},
    },
    "oneOf": [{"required": ["usd"]}, {"required": ["refused"]}],
}
_PRICES = {
    "type": "object",
    "description": "The price list of the job's region and component, as it was read that day.",
    "properties": {
        "region": _REGION,
        "component": {"enum": ["Training", "Processing", "BatchTransform"]},
        "read_at": {**_TIME, "type": ["string", "number", "null"]},
        "why": {"type": ["string", "null"], "description": "Why there is no list of that day."},
        "rates": {"type": "object", "additionalProperties": _RATE},
    },
    "required": ["region", "component"],
}
_KEYS: dict[str, Any] = {
    "schema": {"const": 1, "description": "Absent in files that are older than versions."},
    "anonymized": {"type": "boolean", "description": "True: names are pseudonyms."},
    "account": {"type": ["string", "null"]},
    "region": {"type": ["string", "null"]},
    "as_of": {
        **_TIME,
        "description": "When the job was read: audits are made as of this moment, at the prices of"
        " this file. Without it: as of the job's end, at the packaged prices.",
    },
    "notes": {**_TEXTS, "description": "What could not be read or stored of the job."},
    "describe": {"$ref": "#/$defs/Describe"},
    "tags": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"Key": {"type": "string"}, "Value": {"type": "string"}},
            "required": ["Key"],
        },
    },
    "metrics": {
        "type": "object",
        "properties": {
            "period_s": {
                "type": "integer",
                "minimum": 1,
                "description": "The period of all series that have none.",
            },
            "absent": {
                "type": "object",
                "description": "Why a metric without series has none.",
                "properties": {
                    "code": {"type": "string"},
                    "reason": {"type": "string"},
                    "remedy": {"type": ["string", "null"]},
                },
                "required": ["code", "reason"],
            },
            "notes": {**_TEXTS, "description": "What else could not be read of the metrics."},
            "series": {"type": "array", "items": _SERIES},
        },
        "required": ["series"],
    },
    "prices": _PRICES,
    "provenance": {"description": "The origin of the file; not read."},
}
RECORDING: dict[str, Any] = {
    "description": "One job, or a tuning or AutoML job with its jobs (`children`), whose `as_of`"
    " and `prices` apply to all of them that have none of their own.",
    "$defs": {
        "Describe": {
            "type": "object",
            "description": "A Describe* response as the AWS CLI prints it. A file that"
            " `sageaudit record` wrote has no hyperparameters, environment or arguments. Instead"
            " it has what audits need of them: Hints, EntryPoint, TunedFor, FailureClass and"
            " Fingerprint.",
            "anyOf": [
                {
                    "properties": {
                        f"{prefix}JobName": {"type": "string", "minLength": 1},
                        f"{prefix}JobStatus": _STATUS,
                    },
                    "required": [f"{prefix}JobName", f"{prefix}JobStatus"],
                }
                for prefix in _PREFIXES
            ],
        },
        "Recording": {"type": "object", "properties": _KEYS, "required": ["describe"]},
    },
    "type": "object",
    "properties": {
        **_KEYS,
        "children": {
            "type": "array",
            "items": {"$ref": "#/$defs/Recording"},
            "description": "The jobs that a tuning or AutoML job launched.",
        },
        "deleted": {
            **_TEXTS,
            "description": "ARNs of jobs that it launched too, and that were deleted before this"
            " file was written: its audit says how many are not audited.",
        },
    },
    "anyOf": [{"required": ["describe"]}, {"required": ["children"]}],
}
