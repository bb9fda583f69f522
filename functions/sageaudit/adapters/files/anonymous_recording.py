"""Recordings for sharing: what audits read, under pseudonyms.

Of the kept answer each name becomes a pseudonym, by the table of `job_fields`; enumerated fields
keep what AWS's service model knows. Sentences stay where they are our own. Numbers and times stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date
from typing import Any

from sageaudit.domain.audit.pseudonyms import Pseudonyms
from sageaudit.domain.job.describe import TAG_NOT_SET, TAG_SET, TAGS, keep
from sageaudit.domain.job.fields import DERIVED, UNKNOWN, KeptAs, walked
from sageaudit.domain.job.job_fields import FIELDS
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import REGION
from sageaudit.domain.policy.policy import TAG as EXEMPTION
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import DENIED

ANONYMIZED = "anonymized"
"""The key that says so in the file."""
NOT_SHARED = "not shared"
"""In place of a sentence that is not our own."""
_PUBLIC = ("region", "component", "read_at", "managed_spot", "rates")
"""What a recording has of the price list, which AWS publishes."""
_KNOWN_TAGS = TAGS.union(Policy().owner_tags)
"""Names of tags that stay: those that audits read by default."""
_CODES = frozenset({"metric_missing", DENIED})
"""Why a job's metrics are absent, as the reader of CloudWatch says it."""
_OPEN = re.compile(
    r"(?:tags: )?[a-z]{1,20}:[A-Za-z]{1,60} (?:is not permitted|is throttled: try again later)"
    r"|CloudWatch has no points|CloudWatch keeps metrics for 455 days"
    r"|the job's own code (?:did not run|has not run yet)"
    r"|series of the extreme hosts alone(?:; no curves)?"
    r"|the series were too large to keep"
)
"""Sentences of our own that hold nothing of the account."""


def anonymized(
    document: Mapping[str, Any], salt: bytes, rules: Collection[str], types: Collection[str]
) -> dict[str, Any]:
    """A recording's JSON for sharing. Raises Malformed.

    `rules`: the names of all rules, which exemptions keep; `types`: the instance types that AWS's
    service model knows. The same salt gives the same pseudonyms, in other files too. Times are not
    shifted: prices are those of a day.
    """
    file = _File(Pseudonyms(salt, _job_names(document)), rules, types)
    kept = {"schema": document["schema"], ANONYMIZED: True, **file.one(document)}
    if "children" in document:
        kept["children"] = [file.one(child) for child in document["children"]]
    return kept


def _job_names(document: Mapping[str, Any]) -> Iterator[str]:
    for one in (document, *document.get("children", ())):
        answer = one.get("describe") or {}
        found = (answer.get(kind.row.name_key) for kind in JobKind)
        yield from (name for name in found if isinstance(name, str))


class _File:
    """The names of one file, and what stays in it."""

    def __init__(self, names: Pseudonyms, rules: Collection[str], types: Collection[str]) -> None:
        self._names = names
        self._rules = rules
        self._types = types

    def one(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """One recorded job."""
        names, account = self._names, document.get("account")
        shared: Mapping[str, Callable[[Any], Any]] = {
            "account": lambda known: known and names.account(known),
            "region": lambda name: name if name and REGION.fullmatch(name) else None,
            "as_of": lambda moment: moment,
            "notes": lambda texts: [_sentence(text) for text in texts],
            "describe": lambda answer: self._answer(answer, account),
            "deleted": lambda arns: [names.arn(arn) for arn in arns],
            "tags": lambda tags: [
                self._tag(name, value)
                for name, value in {item["Key"]: item["Value"] for item in tags}.items()
            ],
            "metrics": self._metrics,
            "prices": lambda prices: {
                **{key: prices[key] for key in _PUBLIC if key in prices},
                "why": prices["why"] and _sentence(prices["why"]),
            },
        }
        return {key: share(document[key]) for key, share in shared.items() if key in document}

    def _answer(self, answer: Mapping[str, Any], own_account: str | None) -> dict[str, Any]:
        """An answer; `own_account`: whose images are not AWS's."""
        names = self._names
        pseudonyms: Mapping[KeptAs, Callable[[str], str]] = {
            KeptAs.TYPE: lambda text: text if text in self._types else UNKNOWN,
            KeptAs.JOB: names.job,
            KeptAs.ARN: names.arn,
            KeptAs.IMAGE: lambda text: names.image(text, own_account),
            KeptAs.MODEL: lambda text: names.word("mod", text),
            KeptAs.ADDRESS: names.address,
            KeptAs.CHANNEL: names.channel,
            KeptAs.GROUP: lambda text: names.word("grp", text),
            KeptAs.METRIC: names.metric,
            KeptAs.RULE: names.debugger_rule,
        }

        def shared(field: KeptAs, section: Mapping[str, Any], key: str) -> Any:
            text, pseudonym = section[key], pseudonyms.get(field)
            return pseudonym(text) if pseudonym and isinstance(text, str) else text

        plain = keep(answer)
        derived = dict(plain[DERIVED])
        for key, pseudonym in (
            ("EntryPoint", names.script),
            ("TunedFor", names.metric),
            ("Fingerprint", lambda text: names.word("fpr", text)),
        ):
            if key in derived:
                derived[key] = pseudonym(derived[key])
        return {**walked(plain, FIELDS, shared), DERIVED: derived}

    def _metrics(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        if "absent" in metrics:
            absent = metrics["absent"]
            code = absent["code"] if absent["code"] in _CODES else NOT_SHARED
            kept["absent"] = {"code": code, "reason": _sentence(absent["reason"]), "advice": None}
        if "notes" in metrics:
            kept["notes"] = [_sentence(text) for text in metrics["notes"]]
        hosts: dict[str, list[str]] = {}
        for series in metrics["series"]:
            hosts.setdefault(series["host"].partition("/")[0], []).append(series["host"])
        kept["series"] = [
            {
                **{key: series[key] for key in ("start", "period_s", "values")},
                "host": self._names.host(series["host"], hosts[series["host"].partition("/")[0]]),
                "metric": self._names.metric(series["metric"]),
            }
            for series in metrics["series"]
        ]
        return kept

    def _tag(self, name: str, value: str) -> dict[str, str]:
        """A tag: its value, and a name that is not common, become pseudonyms.

        An exemption stays with the names of rules and its date, so that it has the same effect.
        """
        names = self._names
        shown = name if name in _KNOWN_TAGS else names.word("tag", name)
        if name == EXEMPTION:
            value = " ".join(map(self._exempt, value.split()))
        elif value and value not in {TAG_SET, TAG_NOT_SET}:
            value = names.arn(value) if value.startswith("arn:") else names.word("val", value)
        return {"Key": shown, "Value": value}

    def _exempt(self, word: str) -> str:
        key, sign, until = word.partition("=")
        if not sign:
            return word if word in self._rules else self._names.word("val", word)
        try:
            return f"until={date.fromisoformat(until)}" if key == "until" else "-=-"
        except ValueError:
            return "until=-"


def _sentence(text: str) -> str:
    bare = text.rstrip(".")
    return bare if _OPEN.fullmatch(bare) else NOT_SHARED
