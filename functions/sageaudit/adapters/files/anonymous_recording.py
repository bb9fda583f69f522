"""Recordings for sharing: `domain/audit/anonymous.py` applied to all parts of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sageaudit.domain.audit.anonymous import NOT_SHARED, anonymous_answer, anonymous_tags
from sageaudit.domain.audit.pseudonyms import Pseudonyms
from sageaudit.domain.job.buckets import known_region
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import REGION

ANONYMIZED = "anonymized"
"""The key that says so in the file."""
_PUBLIC = ("region", "component", "read_at", "managed_spot", "rates")
"""What a recording has of the price list, which AWS publishes."""
_CODE = re.compile(r"[a-z_]{1,40}\Z")
_OPEN = re.compile(
    r"(?:tags: )?[a-z]{1,20}:[A-Za-z]{1,60} (?:is not permitted|is throttled: try again later)"
    r"(?:; the event's tags are used)?"
    r"|CloudWatch has no points|CloudWatch keeps metrics for 455 days"
    r"|the job's own code (?:did not run|has not run yet)"
    r"|series of the extreme hosts in full, of the others as quantiles(?:; no curves)?"
    r"|the series were too large to keep"
)
"""Sentences of our own that hold nothing of the account."""


def anonymized(document: Mapping[str, Any], salt: bytes, rules: frozenset[str]) -> dict[str, Any]:
    """A recording's JSON for sharing. `rules`: the names of all rules, which exemptions keep.

    The same salt gives the same pseudonyms, in other files too. Times are not shifted: prices are
    those of a day.
    """
    names = Pseudonyms(salt, _job_names(document))
    kept = {"schema": document["schema"], ANONYMIZED: True, **_one(document, names, rules)}
    if "children" in document:
        kept["children"] = [_one(child, names, rules) for child in document["children"]]
    return kept


def _job_names(document: Mapping[str, Any]) -> Iterator[str]:
    for one in (document, *document.get("children", ())):
        answer = one.get("describe") or {}
        found = (answer.get(f"{kind.row.prefix}JobName") for kind in JobKind)
        yield from (name for name in found if isinstance(name, str))


def _one(document: Mapping[str, Any], names: Pseudonyms, rules: frozenset[str]) -> dict[str, Any]:
    account, region = document.get("account"), document.get("region")
    kept: dict[str, Any] = {}
    if "account" in document:
        kept["account"] = account and names.account(account)
    if "region" in document:
        kept["region"] = region if region and REGION.fullmatch(region) else None
    if "as_of" in document:
        kept["as_of"] = document["as_of"]
    if "notes" in document:
        kept["notes"] = _sentences(document["notes"])
    if "describe" in document:
        kept["describe"] = anonymous_answer(document["describe"], names, account)
    if "tags" in document:
        tags = {item["Key"]: item["Value"] for item in document["tags"]}
        kept["tags"] = [
            {"Key": name, "Value": value}
            for name, value in anonymous_tags(tags, names, rules).items()
        ]
    if "buckets" in document:
        kept["buckets"] = {
            names.bucket(name): known_region(place) for name, place in document["buckets"].items()
        }
    if "metrics" in document:
        kept["metrics"] = _metrics(document["metrics"], names)
    if "prices" in document:
        why = document["prices"]["why"]
        public = {key: document["prices"][key] for key in _PUBLIC if key in document["prices"]}
        kept["prices"] = {**public, "why": why and _sentence(why)}
    return kept


def _metrics(metrics: Mapping[str, Any], names: Pseudonyms) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    if "absent" in metrics:
        absent = metrics["absent"]
        code = absent["code"] if _CODE.match(absent["code"]) else NOT_SHARED
        kept["absent"] = {"code": code, "reason": _sentence(absent["reason"]), "advice": None}
    if "notes" in metrics:
        kept["notes"] = _sentences(metrics["notes"])
    hosts: dict[str, list[str]] = {}
    for series in metrics["series"]:
        hosts.setdefault(series["host"].partition("/")[0], []).append(series["host"])
    kept["series"] = [
        {
            **{key: series[key] for key in ("start", "period_s", "values")},
            "host": names.host(series["host"], hosts[series["host"].partition("/")[0]]),
            "metric": names.metric(series["metric"]),
        }
        for series in metrics["series"]
    ]
    return kept


def _sentences(texts: list[str]) -> list[str]:
    return [_sentence(text) for text in texts]


def _sentence(text: str) -> str:
    bare = text.rstrip(".")
    return bare if _OPEN.fullmatch(bare) else NOT_SHARED
