"""Every job whose truth is known, with its audit: stories, families, searches and an expert's jobs.

One form for all of them, so that each rule's answers can be counted over all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from sageaudit.adapters.files import recording
from sageaudit.cli.support.recordings.recorded_jobs import run_of
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules import catalogue
from sageaudit.rules.card import AccountCase, RequestCase
from sageaudit.workflows.audit.judge import audit_job
from tests.labelled.collected import families, searches, stories
from tests.labelled.expert_jobs import Range, compared
from tests.labelled.large import Expert
from tests.labelled.sagas import audits

SEEDS = (1, 2, 3, 4, 5)
"""Each story happens on five days: other lengths, strengths and noise."""
SAGA_SEEDS = (1, 2)


@dataclass(frozen=True)
class LabelledJob:
    """One audited job: what happened, and by rule whether it should be told; absent: either."""

    name: str
    happened: str
    document: AuditDocument
    truths: Mapping[str, bool]
    wasted_usd: Range | None = None
    """Avoidable and lost dollars, certain and at most; None where nobody knows them."""

    @property
    def told(self) -> frozenset[str]:
        """The rules that stand: one whose story another one tells is not said."""
        return frozenset(
            finding["rule"]
            for finding in self.document["findings"]
            if not finding["subsumed_by"] and "training_jobs" not in finding["evidence"]
        )


@cache
def rules() -> tuple[str, ...]:
    """Those that judge jobs, families and tuning jobs: an account is no recording."""
    return tuple(r.name.name for r in catalogue.load() if r.scope not in {AccountCase, RequestCase})


@cache
def generated() -> tuple[LabelledJob, ...]:
    """Stories and sagas, on every of their days."""
    return (*_stories(), *_sagas())


def _stories() -> Iterator[LabelledJob]:
    ruleset, policy = catalogue.ruleset(), Policy(rules_on=frozenset(rules()))
    for story in stories():
        for seed in SEEDS:
            run = run_of(recording.of_document(story.tell(seed)))
            audit = audit_job(run.job, run.usage, run.market, policy, ruleset, now=run.now)
            truths = {rule: story.truth(rule) for rule in rules()}
            yield _labelled(story.name, seed, document(audit), truths)


def _sagas() -> Iterator[LabelledJob]:
    for saga in (*families(), *searches()):
        for seed in SAGA_SEEDS:
            truths = {rule: saga.truth(rule) for rule in rules()}
            yield _labelled(saga.name, seed, audits(saga.tell(seed))[-1], truths)


def _labelled(
    name: str, seed: int, audited: AuditDocument, truths: dict[str, bool | None]
) -> LabelledJob:
    known = {rule: truth for rule, truth in truths.items() if truth is not None}
    return LabelledJob(f"{name} {seed}", name.replace("-", " "), audited, known)


@cache
def of_experts() -> tuple[LabelledJob, ...]:
    """The jobs that an expert judged in dollars."""
    return tuple(
        LabelledJob(
            one.name,
            one.story,
            one.document,
            MappingProxyType(_truths(one.expert, one.told)),
            one.wasted_usd,
        )
        for one in compared()
    )


def _truths(expert: Expert, told: set[str]) -> dict[str, bool]:
    """What must and what must not be said; all else is left open.

    Where any one of several rules will do, those that spoke are right, and none missed it alone.
    """
    must = {topic for topic in expert.must_say if isinstance(topic, str)}
    any_one = {rule for topic in expert.must_say if not isinstance(topic, str) for rule in topic}
    return dict.fromkeys(expert.must_not_say, False) | dict.fromkeys(must | any_one & told, True)
