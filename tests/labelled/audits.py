"""Audits of the labelled jobs, each made once per process, when first needed.

All ways from a recording to its audit are here: as the rules judge it, as the Lambda function does,
and as the command line does.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from msgspec import Struct, field

from sageaudit.adapters.files import recording
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.prices import packaged, sources
from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Finding
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.rule_choices import Requirement
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, MissingMetrics, RawSeries
from sageaudit.ports import History
from sageaudit.rules import catalogue
from sageaudit.rules.card import AccountCase, RequestCase
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import AuditRecorded, AuditTrigger
from sageaudit.workflows.audit.judge import audit_job, run_summary
from sageaudit.workflows.audit.run import audit_finished_job
from sageaudit.workflows.recordings import run as recorded_audits
from tests.fakes.audit_flow import FakeJobs, dependencies
from tests.fakes.lambda_events import end_event
from tests.labelled.expert import ExpertJob, expert_jobs
from tests.labelled.machine import Json
from tests.labelled.story import FAMILY, ONE, SEARCH, Story, stories_of_kind

SEEDS = {ONE: (1, 2, 3, 4, 5), FAMILY: (1, 2), SEARCH: (1, 2)}
"""Seeds by kind of story: each gives other lengths, loads and noise."""
_ABSENT = MissingMetrics("metric_missing", "no points")
_DAY = timedelta(days=1)


@cache
def rules() -> tuple[str, ...]:
    """Returns the names of rules that judge jobs, families and tuning jobs."""
    return tuple(r.info.name for r in catalogue.load() if r.scope not in {AccountCase, RequestCase})


@cache
def every_rule_on() -> Policy:
    """Returns a policy with every rule enabled, which forbids encrypted traffic between hosts."""
    plain = Requirement("EnableInterContainerTrafficEncryption", "==", flag_value=False)
    names = frozenset(rule.info.name for rule in catalogue.load())
    return Policy(enabled_rules=names, require={plain.path: plain})


def audit(recorded: Json, earlier: tuple[AuditSummary, ...] = ()) -> Audit:
    """Audits a job as the Lambda function does a day later, with every rule enabled."""
    read = recording.parse_job(recorded)
    job = parse(read.describe, read.tags, account=read.account, region=read.region, key=b"secret")
    assert job.ended_at is not None
    market = sources.offline_markets().market(job, job.ended_at)
    usage = measure(job, read.series, market.types, missing_reason=_ABSENT)
    now, policy = job.ended_at + _DAY, every_rule_on()
    return audit_job(job, usage, market, policy, catalogue.ruleset(), now=now, earlier_runs=earlier)


def summary_for_next_run(audit: Audit) -> AuditSummary:
    """Returns the summary that the family's next run gets of this one."""
    job, savings = audit.job, audit.savings
    assert job.ended_at is not None
    return replace(
        run_summary(audit),
        family=audit.family,
        owner=audit.owner,
        total_usd=audit.bill.total_usd,
        avoidable_usd=savings.avoidable_usd,
        lost_usd=savings.lost_usd,
    )


def standing_findings(audit: Audit) -> list[Finding]:
    """Returns the findings that ask for a change and are shown."""
    return [
        finding
        for finding in audit.savings.findings
        if finding.detection.fix and not (finding.superseded_by or finding.subsumed_by)
    ]


class RecordedMetrics(Struct, frozen=True):
    """Implements Metrics with the series of each job's recording."""

    series: Mapping[str, tuple[RawSeries, ...]] = field(default_factory=dict)

    def read(self, job: Job, now: datetime) -> Measurements:
        return measure(
            job, self.series.get(job.name, ()), packaged.instance_types(), missing_reason=_ABSENT
        )


def audit_in_turn(
    recordings: Iterable[Json], history: History | None = None
) -> list[AuditDocument]:
    """Audits recordings in order as the Lambda function does, with default rules."""
    read = [recording.parse_job(recorded) for recorded in recordings]
    named = [(*_name(recorded.describe), recorded) for recorded in read]
    deps = dependencies(
        FakeJobs({name: [dict(recorded.describe)] for _, name, recorded in named}),
        RecordedMetrics({name: recorded.series for _, name, recorded in named}),  # type: ignore[arg-type]
        markets=sources.offline_markets(),
        history=history or SqliteHistory(),
    )
    documents = []
    for kind, name, recorded in named:
        now = max(_ends(recorded.describe)) + timedelta(minutes=25)
        event = end_event(name, kind, CreationTime=None)
        outcome = audit_finished_job(event, deps, now=now, caller=AuditTrigger.PERSON)
        assert isinstance(outcome, AuditRecorded)
        documents.append(outcome.document)
    return documents


def _name(answer: Mapping[str, object]) -> tuple[JobKind, str]:
    [kind] = [kind for kind in JobKind if f"{kind.spec.prefix}JobName" in answer]
    return kind, str(answer[f"{kind.spec.prefix}JobName"])


def _ends(answer: Mapping[str, object]) -> Iterator[datetime]:
    for key, value in answer.items():
        if key.endswith("EndTime"):
            yield datetime.fromisoformat(str(value))


def audit_file(recorded: Json) -> AuditDocument:
    """Audits a recording as the command line does, with default rules."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.json"
        file.write_text(json.dumps(recorded), encoding="utf-8")
        return recorded_audits.audit_recording(file, Policy())


@cache
def story_document(story: Story, seed: int) -> AuditDocument:
    """Returns the document of a story's last job; a single job is audited with every rule."""
    recordings = story.recordings(seed)
    return document(audit(recordings[0])) if story.kind == ONE else audit_in_turn(recordings)[-1]


@cache
def expert_documents(name: str) -> tuple[AuditDocument, ...]:
    """Returns the documents of an expert's job, or of a family's runs in order."""
    [job] = [job for job in expert_jobs() if job.name == name]
    if job.is_family:
        return tuple(audit_in_turn(job.recordings))
    return (audit_file(job.recordings[0]),)


class LabelledJob(Struct, frozen=True):
    """One audited job with its truth by rule: whether it should be reported; absent: either.

    `named`: the rules in its label; all other rules are merely not expected.
    """

    name: str
    happened: str
    document: AuditDocument
    truths: Mapping[str, bool]
    named: frozenset[str]

    @property
    def reported_rules(self) -> frozenset[str]:
        """Rules with a finding that is not explained by another one, nor only of child jobs."""
        return frozenset(
            finding["rule"]
            for finding in self.document["findings"]
            if not finding["subsumed_by"] and "training_jobs" not in finding["evidence"]
        )


@cache
def story_jobs() -> tuple[LabelledJob, ...]:
    """Returns each story for each of its seeds; stories of one job first."""
    return tuple(
        _labelled(story, seed)
        for kind in (ONE, FAMILY, SEARCH)
        for story in stories_of_kind(kind)
        for seed in SEEDS[kind]
    )


def _labelled(story: Story, seed: int) -> LabelledJob:
    truths = {rule: truth for rule in rules() if (truth := story.truth(rule)) is not None}
    return LabelledJob(
        f"{story.name} {seed}",
        story.name.replace("-", " "),
        story_document(story, seed),
        truths,
        story.must_find | story.may_find | story.must_not_find,
    )


@cache
def expert_judged_jobs() -> tuple[LabelledJob, ...]:
    """Returns the jobs that an expert judged: what must, and must not, be reported.

    If any one of several rules is enough, the reporting ones are right, and the others missed
    nothing.
    """
    return tuple(map(_judged, expert_jobs()))


def _judged(job: ExpertJob) -> LabelledJob:
    last = expert_documents(job.name)[-1]
    reported = {finding["rule"] for finding in last["findings"] if not finding["subsumed_by"]}
    must = {topic for topic in job.must_say if isinstance(topic, str)}
    any_one = {rule for topic in job.must_say if not isinstance(topic, str) for rule in topic}
    truths = dict.fromkeys(job.must_not_say, False)
    truths |= dict.fromkeys(must | any_one & reported, True)
    return LabelledJob(job.name, job.what_happened, last, truths, frozenset(truths) | any_one)
