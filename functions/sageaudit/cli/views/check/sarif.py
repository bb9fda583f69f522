"""The output of `sageaudit check` as one SARIF 2.1.0 document, for GitHub code scanning.

Source: the OASIS standard, and GitHub's page "SARIF support for code scanning". GitHub reads at
most 25,000 results, needs a line for each, and tells a moved result by `primaryLocationLineHash`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sageaudit import __version__
from sageaudit.adapters.files.text_file import STDIN, display_name
from sageaudit.cli.views.check.lines import finding_lines
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.rules import catalogue
from sageaudit.rules.card import Rule
from sageaudit.workflows.check.comparison import FileCheck

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"high": "error", "medium": "warning", "low": "note", "info": "note"}
MAX_RESULTS = 25_000
_MAX_MESSAGE_LENGTH = 10_000
_API_RULES = {
    "unknown-parameter": "AWS's API has no parameter of this name",
    "missing-parameter": "AWS's API requires a parameter that is missing",
    "wrong-type": "AWS's API takes another type for the parameter",
    "outside-limits": "The value is outside the limits of AWS's API",
    "unknown-value": "The value is not one that AWS's API allows",
}
"""Titles of the faults that AWS's service model shows (`domain/request/validity.py`)."""


def sarif_document(file_checks: Sequence[FileCheck]) -> dict[str, Any]:
    """Returns a document about all files, with the most severe results first."""
    results = sorted(
        (result for file_check in file_checks for result in _results(file_check)),
        key=lambda result: list(_LEVELS.values()).index(result["level"]),
    )
    known_rules = {rule.info.id: rule for rule in catalogue.load()}
    rule_ids = list(dict.fromkeys(result["ruleId"] for result in results))
    indexes = {rule_id: index for index, rule_id in enumerate(rule_ids)}
    notifications = [note for file_check in file_checks for note in _notifications(file_check)]
    if len(results) > MAX_RESULTS:
        text = f"{len(results) - MAX_RESULTS:,} less severe results are left out."
        notifications.append({"level": "warning", "message": {"text": text}})
    invocation = {
        "executionSuccessful": not any(file_check.error for file_check in file_checks),
        "toolExecutionNotifications": notifications,
    }
    driver = {
        "name": "sageaudit",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(rule_id, known_rules.get(rule_id)) for rule_id in rule_ids],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "results": [
            result | {"ruleIndex": indexes[result["ruleId"]]} for result in results[:MAX_RESULTS]
        ],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule_id: str, rule: Rule | None) -> dict[str, Any]:
    name = rule.info.name if rule else rule_id
    title = (rule.title if rule else _API_RULES.get(rule_id, rule_id)).rstrip(".") + "."
    help_text = f"{title} `sageaudit rules {name}` explains the rule." if rule else title
    return {
        "id": rule_id,
        "name": name,
        "shortDescription": {"text": title},
        "fullDescription": {"text": title},
        "help": {"text": help_text.replace("`", ""), "markdown": help_text},
        "properties": {"tags": ["cost", "sagemaker"]},
    }


def _results(file_check: FileCheck) -> Iterator[dict[str, Any]]:
    counts: Counter[str] = Counter()
    for job in file_check.checked["jobs"] if file_check.checked else ():
        for row in job["findings"]:
            place = (file_check.name, job["label"], job["name"] or "", row["rule"], row["path"])
            digest = hashlib.sha256("\0".join(place).encode("utf-8", "replace")).hexdigest()[:16]
            counts[digest] += 1
            saving = {key: row[key] for key in ("saving_usd", "saving_basis") if row["saving_usd"]}
            result = {
                "ruleId": row["id"] or row["rule"],
                "level": _LEVELS[row["severity"]],
                "message": {"text": _message(job, row)},
                "locations": [_location(file_check.name, row["line"], job["name"] or job["label"])],
                "partialFingerprints": {"primaryLocationLineHash": f"{digest}:{counts[digest]}"},
                "properties": {"severity": row["severity"], "bucket": row["bucket"], **saving},
            }
            if row["not_counted"] is not None:
                justification = for_terminal(row["not_counted"])
                result["suppressions"] = [{"kind": "external", "justification": justification}]
            yield result


def _message(job: dict[str, Any], row: dict[str, Any]) -> str:
    title, *details = finding_lines(row)
    dollars = title.text.partition("  ")[2]
    lines = [
        f"{job['name'] or job['label']}{f': {dollars}' if dollars else ''}",
        *(f"{line.prefix}{line.text}" for line in details),
    ]
    text = "\n".join(map(for_terminal, lines))
    return cut_middle(text.replace("](", "] ("), _MAX_MESSAGE_LENGTH)  # `[x](y)` is a link


def _location(name: str, line: int | None, job: str = "") -> dict[str, Any]:
    """Returns a place in a file. A file without line numbers has the line 1."""
    location: dict[str, Any] = {"logicalLocations": [{"name": for_terminal(job)}]} if job else {}
    if name != display_name(STDIN):
        location["physicalLocation"] = {
            "artifactLocation": {"uri": file_uri(name)},
            "region": {"startLine": line or 1},
        }
    return location


def file_uri(name: str) -> str:
    """Returns a path as a URI relative to the working directory, if it is inside it."""
    path = Path(name)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    if path.is_absolute():
        return path.as_uri()
    uri = quote(path.as_posix().encode("utf-8", "replace"))
    return f"./{uri}" if ":" in path.parts[0] else uri


def _notifications(file_check: FileCheck) -> Iterator[dict[str, Any]]:
    sentences = file_check.checked["not_checked"] if file_check.checked else ()
    errors = [file_check.error] if file_check.error else []
    location = _location(file_check.name, None)
    for sentence in (*errors, *sentences):
        yield {
            "level": "error" if errors else "note",
            "message": {"text": for_terminal(sentence)},
            **({"locations": [location]} if location else {}),
        }
