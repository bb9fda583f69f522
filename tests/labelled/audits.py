"""The audits of the labelled jobs: each is made once a test run and process, when it is asked for.

All ways from a recording to its audit are here: as the rules judge it, as the Lambda's flow does,
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
from sageaudit.adapters.prices import packaged, sources
from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.rule_choices import Requirement
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Missing, RawSeries
from sageaudit.rules import catalogue
from sageaudit.rules.card import AccountCase, RequestCase
from sageaudit.workflows.audit.attempt import Audited, Caller
from sageaudit.workflows.audit.judge import audit_job
from sageaudit.workflows.audit.run import audit_finished_job
from sageaudit.workflows.recordings import run as recorded_audits
from tests.fakes.dependencies import SaidJobs, dependencies, ended
from tests.labelled.expert import Scenario
from tests.labelled.machine import Json
from tests.labelled.story import FAMILY, ONE, SEARCH, Story, collected, of_kind

SEEDS = {ONE: (1, 2, 3, 4, 5), FAMILY: (1, 2), SEARCH: (1, 2)}
"""Each story happens on several days: other lengths, strengths and noise."""
_ABSENT = Missing("metric_missing", "no points")
_DAY = timedelta(days=1)


@cache
def rules() -> tuple[str, ...]:
    """Those that judge jobs, families and tuning jobs: an account is no recording."""
    return tuple(r.name.name for r in catalogue.load() if r.scope not in {AccountCase, RequestCase})


@cache
def every_rule_on() -> Policy:
    """Also those that are off by default; traffic between hosts may not be encrypted."""
    plain = Requirement("EnableInterContainerTrafficEncryption", "==", switch=False)
    names = frozenset(rule.name.name for rule in catalogue.load())
    return Policy(rules_on=names, require={plain.path: plain})


def audit(recorded: Json, earlier: tuple[AuditSummary, ...] = ()) -> Audit:
    """A job as the Lambda judges it a day later, with every rule on."""
    read = recording.of_document(recorded)
    job = parse(read.describe, read.tags, account=read.account, region=read.region, key=b"secret")
    assert job.ended_at is not None
    market = sources.offline_markets().market(job, job.ended_at)
    usage = measure(job, read.series, market.types, absent=_ABSENT)
    now, policy = job.ended_at + _DAY, every_rule_on()
    return audit_job(job, usage, market, policy, catalogue.ruleset(), now=now, earlier=earlier)


class RecordedMetrics(Struct, frozen=True):
    """CloudWatch that answers with the series of each job's recording."""

    series: Mapping[str, tuple[RawSeries, ...]] = field(default_factory=dict)

    def read(self, job: Job, now: datetime) -> Measurements:
        return measure(job, self.series.get(job.name, ()), packaged.types(), absent=_ABSENT)


def audited_in_turn(recordings: Iterable[Json]) -> list[AuditDocument]:
    """The documents of all, audited in their order as the Lambda would, by the shipped rules."""
    read = [recording.of_document(one) for one in recordings]
    named = [(*_name(one.describe), one) for one in read]
    of = dependencies(
        SaidJobs({name: [dict(one.describe)] for _, name, one in named}),
        RecordedMetrics({name: one.series for _, name, one in named}),  # type: ignore[arg-type]
        markets=sources.offline_markets(),
    )
    documents = []
    for kind, name, one in named:
        now = max(_ends(one.describe)) + timedelta(minutes=25)
        event = ended(name, kind, CreationTime=None)
        done = audit_finished_job(event, of, now=now, caller=Caller.PERSON)
        assert isinstance(done, Audited)
        documents.append(done.document)
    return documents


def _name(answer: Mapping[str, object]) -> tuple[JobKind, str]:
    [kind] = [kind for kind in JobKind if f"{kind.row.prefix}JobName" in answer]
    return kind, str(answer[f"{kind.row.prefix}JobName"])


def _ends(answer: Mapping[str, object]) -> Iterator[datetime]:
    for key, value in answer.items():
        if key.endswith("EndTime"):
            yield datetime.fromisoformat(str(value))


def audited_file(recorded: Json) -> AuditDocument:
    """As the command line audits the file, by the shipped rules."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.json"
        file.write_text(json.dumps(recorded), encoding="utf-8")
        return recorded_audits.audit_recording(file, Policy())


@cache
def of_story(story: Story, seed: int) -> AuditDocument:
    """The document of a story's last job: of one job with every rule on."""
    told = story.tell(seed)
    return document(audit(told[0])) if story.kind == ONE else audited_in_turn(told)[-1]


@cache
def scenarios() -> tuple[Scenario, ...]:
    """Every job and family that an expert judged: the `SCENARIOS` of the modules in `experts/`."""
    return tuple(sorted(collected("experts", "SCENARIOS"), key=lambda one: one.is_family))


@cache
def of_scenario(name: str) -> tuple[AuditDocument, ...]:
    """The documents of an expert's job, or of a family's runs in their order."""
    [one] = [one for one in scenarios() if one.name == name]
    if one.is_family:
        return tuple(audited_in_turn(one.recordings))
    return (audited_file(one.recordings[0]),)


class LabelledJob(Struct, frozen=True):
    """One audited job: what happened, and by rule whether it should be told; absent: either.

    `named`: the rules that its label names; all others are no more than not expected.
    """

    name: str
    happened: str
    document: AuditDocument
    truths: Mapping[str, bool]
    named: frozenset[str]

    @property
    def told(self) -> frozenset[str]:
        """The rules that stand: one whose story another one tells is not said."""
        return frozenset(
            finding["rule"]
            for finding in self.document["findings"]
            if not finding["subsumed_by"] and "training_jobs" not in finding["evidence"]
        )


@cache
def of_stories() -> tuple[LabelledJob, ...]:
    """Each story on every of its days, those of one job first."""
    return tuple(
        _labelled(story, seed)
        for kind in (ONE, FAMILY, SEARCH)
        for story in of_kind(kind)
        for seed in SEEDS[kind]
    )


def _labelled(story: Story, seed: int) -> LabelledJob:
    truths = {rule: truth for rule in rules() if (truth := story.truth(rule)) is not None}
    return LabelledJob(
        f"{story.name} {seed}",
        story.name.replace("-", " "),
        of_story(story, seed),
        truths,
        story.wasteful | story.either | story.fine,
    )


@cache
def of_experts() -> tuple[LabelledJob, ...]:
    """The jobs that an expert judged in dollars: what must, and must not, be said.

    Where any one of several rules will do, those that spoke are right, and none missed it alone.
    """
    return tuple(map(_judged, scenarios()))


def _judged(one: Scenario) -> LabelledJob:
    last = of_scenario(one.name)[-1]
    said = {finding["rule"] for finding in last["findings"] if not finding["subsumed_by"]}
    must = {topic for topic in one.expert.must_say if isinstance(topic, str)}
    any_one = {
        rule for topic in one.expert.must_say if not isinstance(topic, str) for rule in topic
    }
    truths = dict.fromkeys(one.expert.must_not_say, False)
    truths |= dict.fromkeys(must | any_one & said, True)
    return LabelledJob(one.name, one.story, last, truths, frozenset(truths) | any_one)
