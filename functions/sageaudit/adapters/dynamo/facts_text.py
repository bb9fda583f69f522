"""RunFacts as the text that HEAD keeps: exact numbers, no key that is not known."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.domain.audit.earlier import RunFacts
from sageaudit.domain.job.job import Purchase

MOST_METRICS = 40
"""As many as a training job may define."""
LONGEST_NAME = 200


def facts_text(facts: RunFacts) -> str:
    """Compact JSON; numbers are texts, since a metric may have any exponent."""
    seconds = {
        "elapsed_s": facts.elapsed_s,
        "billable_s": facts.billable_s,
        "retained_s": facts.retained_s,
    }
    named = {
        "instance_type": facts.instance_type,
        "instance_count": facts.instance_count,
        "fingerprint": facts.fingerprint,
        "data_pinned": facts.data_pinned,
        "left_artifact": facts.left_artifact,
        "reason_class": facts.reason_class,
    }
    return to_json(
        {
            "purchase": facts.purchase.value,
            **{key: str(value) for key, value in seconds.items() if value is not None},
            **{key: value for key, value in named.items() if value is not None},
            "phase_s": _texts(facts.phase_s.items()),
            "final_metrics": _texts(list(facts.final_metrics.items())[:MOST_METRICS]),
            "found": list(facts.found),
        }
    )


def read_facts(text: str) -> RunFacts:
    """The facts of a HEAD."""
    kept: dict[str, Any] = from_json(text)
    return RunFacts(
        purchase=Purchase(kept["purchase"]),
        instance_type=kept.get("instance_type"),
        instance_count=kept.get("instance_count"),
        elapsed_s=_number(kept.get("elapsed_s")),
        billable_s=_number(kept.get("billable_s")),
        phase_s={name: Decimal(value) for name, value in kept["phase_s"].items()},
        retained_s=_number(kept.get("retained_s")),
        fingerprint=kept.get("fingerprint"),
        data_pinned=kept.get("data_pinned"),
        left_artifact=kept.get("left_artifact"),
        reason_class=kept.get("reason_class"),
        final_metrics={name: Decimal(value) for name, value in kept["final_metrics"].items()},
        found=tuple(kept["found"]),
    )


def _texts(numbers: Any) -> dict[str, str]:
    return {name[:LONGEST_NAME]: str(value) for name, value in numbers}


def _number(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
