"""Lists the alarms, each with the reason for its threshold.

An alarm is for a failure that no retry repairs, or that retries have not repaired in the usual
time: a person has to look. docs/runbook.md has an entry for each, by `runbook_entry`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MINUTE_S, HOUR_S = 60, 3_600
LAMBDA, SQS = "AWS/Lambda", "AWS/SQS"
STREAM_MAX_AGE_S = 15 * MINUTE_S
QUEUE_MAX_AGE_S = {"FinishedJobs": 2 * HOUR_S, "Decisions": HOUR_S}
NOTICES_MAX_AGE_S = 2 * HOUR_S
RUNBOOK = "docs/runbook.md"


@dataclass(frozen=True, slots=True)
class MetricSource:
    """One CloudWatch metric. `namespace` is None for the functions' own."""

    metric: str
    dimensions: Mapping[str, str]
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class AlarmSpec:
    """One alarm: it is raised if `datapoints` of the last `periods` values are above `threshold`.

    `description_text` is for a person, `threshold_reason` says why this threshold. An `expression`
    combines several metrics: their SUM or MAX, or a formula with {0} for the first of `sources`,
    and so on. With `alarm_if_no_data` it is raised if the metric stops, not if it never had values.
    """

    name: str
    runbook_entry: str
    sources: tuple[MetricSource, ...]
    description_text: str
    threshold_reason: str
    expression: str | None = None
    statistic: str = "Sum"
    period_s: int = 5 * MINUTE_S
    threshold: float = 0
    periods: int = 1
    datapoints: int | None = None
    alarm_if_no_data: bool = False

    @property
    def description(self) -> str:
        """What the alarm means and where its entry is, in one sentence."""
        return f"sageaudit: {self.description_text}; {RUNBOOK}#{self.runbook_entry} says what to do"

    @property
    def datapoints_to_alarm(self) -> int:
        """How many values must be above the threshold."""
        return self.periods if self.datapoints is None else self.datapoints


SUM_STATISTIC, MAX_STATISTIC = "SUM", "MAX"
_MAX_SOURCES = 10
"""CloudWatch's limit for an alarm on an expression."""


def alarm_specs(
    *,
    functions: Mapping[str, str],
    work_queues: Mapping[str, str],
    notices_queues: Mapping[str, str],
    dead_letters: Mapping[str, str],
) -> Iterator[AlarmSpec]:
    """Yields all alarms.

    `functions` has names by handler, `notices_queues` names by channel; the other queues are by
    their name here. All values are physical names.
    """
    yield from _function_alarms(functions)
    for name, queue in work_queues.items():
        yield _late_queue_alarm(name, [queue], QUEUE_MAX_AGE_S[name])
    for number, queues in enumerate(_tens(list(notices_queues.values()))):
        yield _late_queue_alarm(f"Notices{number + 1 if number else ''}", queues, NOTICES_MAX_AGE_S)
    for name, queue in dead_letters.items():
        yield _dead_letters(name, queue)
    yield from _audit_alarms()
    yield from _decision_alarms(functions["notify"])
    yield _failing(
        "DeliverFailing",
        "for hours a channel took no notices, or they could not be read, moved, or marked",
        # A notice that is given up is a dead letter, which has its alarm.
        MetricSource("DeliveryFailed", {"service": "deliver"}),
    )
    yield from _sweep_alarms(functions["sweep"])
    yield AlarmSpec(
        "DigestReport",
        "digest-report",
        (MetricSource("ReportNotWritten", {"service": "digest"}),),
        "a weekly digest was sent without its report, which S3 did not take",
        "the report is written once a week, and nothing writes it again",
    )


def _function_alarms(functions: Mapping[str, str]) -> Iterator[AlarmSpec]:
    """Yields the alarms of functions; the sweep and the digest leave a dead letter after retries.

    A time-out is an error. A message that crashed another function is delivered again.
    """
    of_messages = [name for name in functions if name not in {"sweep", "digest"}]
    for handler in of_messages:
        yield AlarmSpec(
            f"{handler.capitalize()}Errors",
            "function-errors",
            (MetricSource("Errors", {"FunctionName": functions[handler]}, LAMBDA),),
            f"{handler} crashed, or timed out, three times within an hour",
            "what crashed is tried again; three failures in an hour do not pass by themselves",
            period_s=HOUR_S,
            threshold=2,
        )
    yield AlarmSpec(
        "AuditThrottled",
        "function-throttled",
        (MetricSource("Throttles", {"FunctionName": functions["audit"]}, LAMBDA),),
        "Lambda has refused to start audits for most of two hours",
        "a burst is throttled while it is worked off, in an account with ten executions at once "
        "for an hour; longer means that others use up the account's concurrency, of which audits "
        "need the most",
        period_s=15 * MINUTE_S,
        periods=8,
        datapoints=6,
    )
    yield AlarmSpec(
        "Defects",
        "unexpected-errors",
        tuple(MetricSource("Defects", {"service": handler}) for handler in of_messages),
        "a function hit an unexpected error: a fault of its code",
        "a retry meets the same fault: it needs a new version",
        expression=SUM_STATISTIC,
    )


def _tens(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _MAX_SOURCES):
        yield names[start : start + _MAX_SOURCES]


def _late_queue_alarm(name: str, queues: list[str], seconds: int) -> AlarmSpec:
    metric = "ApproximateAgeOfOldestMessage"
    return AlarmSpec(
        f"{name}Late",
        "queue-late",
        tuple(MetricSource(metric, {"QueueName": queue}, SQS) for queue in queues),
        f"a message of {name} has waited for more than {seconds // HOUR_S} h",
        "2,000 jobs that end together are done after about 70 minutes, five at once",
        expression=MAX_STATISTIC if len(queues) > 1 else None,
        statistic="Maximum",
        threshold=seconds,
        periods=3,
    )


def _dead_letters(name: str, queue: str) -> AlarmSpec:
    return AlarmSpec(
        f"{name}NotEmpty",
        "dead-letters",
        (MetricSource("ApproximateNumberOfMessagesVisible", {"QueueName": queue}, SQS),),
        f"{name} has messages that are not tried again",
        "each one waits for a person, and is deleted after 14 days",
        statistic="Maximum",
        period_s=MINUTE_S,
    )


def _failing(name: str, means: str, source: MetricSource) -> AlarmSpec:
    """Returns an alarm on failing hours: a queue's age omits messages received three times."""
    return AlarmSpec(
        name,
        "failing",
        (source,),
        means,
        "what fails is tried again at least once an hour, for 3.5 days: failures in four of six "
        "hours do not pass by themselves, and three days are left to repair the cause",
        period_s=HOUR_S,
        periods=6,
        datapoints=4,
    )


def _audit_alarms() -> Iterator[AlarmSpec]:
    audit = {"service": "audit"}
    # An event that is refused is a dead letter, which has its alarm.
    yield _failing(
        "AuditFailing", "audits have failed for hours", MetricSource("AuditFailed", audit)
    )
    yield AlarmSpec(
        "JobsUnauditable",
        "unauditable",
        (MetricSource("JobsUnauditable", audit),),
        "three or more jobs within six hours could not be audited",
        "one job that its user deleted at once is normal; several have a common cause",
        period_s=6 * HOUR_S,
        threshold=2,
    )
    yield AlarmSpec(
        "RulesFailed",
        "rules-failed",
        (MetricSource("RuleFailed", audit),),
        "a rule ended with an error, so an audit lacks this rule's findings",
        "each one is a fault of the code, and no retry finds the dollars",
    )


def _decision_alarms(notify: str) -> Iterator[AlarmSpec]:
    yield _failing(
        "NotifyFailing",
        "for hours it could not be decided whether to post a message about an audit",
        MetricSource("NotDecided", {"service": "notify"}),
    )
    yield AlarmSpec(
        "StreamLate",
        "stream-late",
        (MetricSource("IteratorAge", {"FunctionName": notify}, LAMBDA),),
        "new audits have waited for more than 15 minutes for notify",
        "notify sets aside what fails, so a stream that is late is not read, or SQS takes nothing; "
        "after 24 h the stream has lost what was not read",
        statistic="Maximum",
        threshold=STREAM_MAX_AGE_S * 1000,
        periods=3,
        datapoints=2,
    )
    yield AlarmSpec(
        "StreamNotRead",
        "stream-late",
        (
            MetricSource("JobsAudited", {"service": "audit"}),
            MetricSource("Invocations", {"FunctionName": notify}, LAMBDA),
        ),
        "jobs were audited in two periods of three hours, and notify was never invoked",
        "notify is invoked for each new audit; a mapping that is disabled or broken invokes "
        "nothing, so that StreamLate has no value",
        expression="IF({0} > 0 AND FILL({1}, 0) < 1, 1, 0)",
        period_s=3 * HOUR_S,
        periods=2,
    )


def _sweep_alarms(function: str) -> Iterator[AlarmSpec]:
    sweep = {"service": "sweep"}
    yield AlarmSpec(
        "JobsMissing",
        "jobs-missing",
        (MetricSource("JobsMissing", sweep), MetricSource("ReconcilerFound", sweep)),
        "jobs ended, their events are there, and they had no audit when it was time for it: three "
        "at one sweep, or one at three sweeps within an hour",
        "a sweep counts a job until it has an audit, for three hours; lost events, which it sends "
        "itself, are not counted here: more mean that audits do not come",
        expression="{0} - FILL({1}, 0)",
        period_s=HOUR_S,
        threshold=2,
    )
    yield AlarmSpec(
        "SweepSilent",
        "sweep-silent",
        (MetricSource("Invocations", {"FunctionName": function}, LAMBDA),),
        "the sweep is not started any more, so lost events are not noticed",
        "it is started every 15 minutes; one that never was has no values to lose, so that a new "
        "installation is quiet",
        period_s=30 * MINUTE_S,
        alarm_if_no_data=True,
    )
    yield AlarmSpec(
        "EventsLost",
        "events-lost",
        (MetricSource("ReconcilerFound", sweep),),
        "in three of the last six hours the sweep found jobs whose event never came",
        "the sweep repairs a single lost event; in three different hours it means that the "
        "delivery of events is broken",
        period_s=HOUR_S,
        periods=6,
        datapoints=3,
    )
    yield AlarmSpec(
        "SweepFailing",
        "failing",
        (MetricSource("SweepFailed", sweep),),
        "for most of an hour the sweep could not list jobs or send what it found",
        "a throttled list is asked again 15 minutes later; three failures of four do not pass",
        period_s=15 * MINUTE_S,
        periods=4,
        datapoints=3,
    )
