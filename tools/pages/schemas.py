"""Writes the JSON Schemas under docs/schema: `make docs`.

The audit's schema comes from the types of the code, the policy's from `schema_policy.py`, the
recording's from `schema_recording.py`, the others from `schema_outputs.py`.
`tests/house/test_schemas.py` compares all of them with what the program prints and reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum

from sageaudit.domain.audit import document
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.bill.finding import Bucket, Confidence, Severity
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from tools.pages import DOCS, schema_outputs
from tools.pages.schema_of_types import DIALECT, Definitions, Schema
from tools.pages.schema_policy import policy
from tools.pages.schema_recording import RECORDING

FOLDER = DOCS / "schema"
Place = tuple[str, str]
"""A class of the document, and one of its keys."""

WORDS: Mapping[Place, type[StrEnum]] = {
    ("AuditDocument", "judged"): Judged,
    ("BillDocument", "spend_qualifier"): SpendQualifier,
    ("JobDocument", "kind"): JobKind,
    ("JobDocument", "purchase"): Purchase,
    ("FindingDocument", "severity"): Severity,
    ("FindingDocument", "confidence"): Confidence,
    ("FindingDocument", "bucket"): Bucket,
}
"""The allowed words of keys that are typed as plain text."""
FORMATS: Mapping[Place, str] = {
    **{("JobDocument", key): "date-time" for key in ("created_at", "started_at", "ended_at")},
    ("AuditDocumentHead", "due_at"): "date-time",
    ("ExemptDocument", "until"): "date",
}
"""The formats of texts, as JSON Schema names them."""
_OUTPUTS: dict[str, tuple[str, Callable[[Definitions], Schema]]] = {
    "account": ("What `sageaudit account --output json` prints", schema_outputs.account),
    "check": ("What `sageaudit check --output json` prints for a file", schema_outputs.check),
    "reconcile": ("What `sageaudit reconcile --output json` prints", schema_outputs.reconcile),
    "prices": ("What `sageaudit prices show --output json` prints", schema_outputs.prices),
    "redrive": ("What `sageaudit redrive --output json` prints", schema_outputs.redrive),
    "rows": ("What lists of a history print with --output json", schema_outputs.rows),
    "scan": ("What `sageaudit scan --output json` prints", schema_outputs.scan),
    "scan-plan": (
        "What `sageaudit scan --dry-run --output json` prints",
        schema_outputs.scan_plan,
    ),
    "rules": ("What `sageaudit rules --output json` prints", schema_outputs.rules),
    "what-if": ("What `sageaudit what-if --output json` prints", schema_outputs.what_if),
}


def schemas() -> dict[str, Schema]:
    """Returns all schemas, by the name of their file."""
    return {
        "audit": _whole("An audit, as `sageaudit audit --output json` prints it", _audit),
        "policy": _whole("policy.toml, the settings of a deployment", lambda _: policy()),
        "recording": _whole("A recording, as `sageaudit record` writes it", lambda _: RECORDING),
        **{name: _whole(title, shape) for name, (title, shape) in _OUTPUTS.items()},
    }


def to_text(schema: Schema) -> str:
    """Returns a schema as it is written to its file."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _whole(title: str, shape: Callable[[Definitions], Schema]) -> Schema:
    definitions = Definitions(WORDS, FORMATS)
    schema = shape(definitions)
    inner = {**definitions.schemas, **schema.get("$defs", {})}
    parts = {"$defs": dict(sorted(inner.items()))} if inner else {}
    return {"$schema": DIALECT, "title": title, **schema, **parts}


def _audit(definitions: Definitions) -> Schema:
    schema = definitions.schema_of(document.AuditDocument)
    keys = definitions.schemas["AuditDocument"]["properties"]
    keys["schema"] = {"const": document.SCHEMA}
    keys["guides"] = schema_outputs.guides(definitions)
    return schema


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, schema in schemas().items():
        (FOLDER / f"{name}.schema.json").write_text(to_text(schema), encoding="utf-8")
