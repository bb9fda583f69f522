"""Lists the alarms, each with the reason for its threshold.

An alarm reports a failure that no retry repairs, or that retries have not repaired in the usual
time, so that a person must act. docs/runbook.md has an entry for each alarm, by `runbook_entry`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MINUTE_S, HOUR_S = 60, 3_600
LAMBDA, SQS = "AWS/Lambda", "AWS/SQS"
STREAM_MAX_AGE_S = 15 * MINUTE_S
QUEUE_MAX_AGE_S = {"FinishedJobs": 2 * HOUR_S, "Decisions": HOUR_S}
NOTICES_MAX_AGE_S = 2 * HOUR_S
_AGE_REASONS = {
    "FinishedJobs": "2,000 jobs that end together are audited within about 70 minutes, five at a "
    "time",
    "Decisions": "a message that fails is tried for the third time within a few minutes, and the "
    "metric then omits it; a message that has waited for an hour is not being read",
}
_NOTICES_AGE_REASON = (
    "a channel may ask twice to wait for up to an hour; after the third try the metric omits the "
    "notice"
)
RUNBOOK = "docs/runbook.md"


@dataclass(frozen=True, slots=True)
class MetricSource:
    """One CloudWatch metric. `namespace` is None for the functions' own metrics."""

    metric: str
    dimensions: Mapping[str, str]
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class AlarmSpec:
    """One alarm. It is raised if `datapoints` of the last `periods` values are above `threshold`.

    `description_text` is for people; `threshold_reason` says why this threshold was chosen. An
    `expression` combines several metrics: their SUM or MAX, or a formula with {0} for the first of
    `sources`, and so on. With `alarm_if_no_data` the alarm is raised if the metric stops, but not
    if it never had values.
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
        """What the alarm means and where its runbook entry is, in one sentence."""
        return f"sageaudit: {self.description_text}; {RUNBOOK}#{self.runbook_entry} says what to do"

    @property
    def datapoints_to_alarm(self) -> int:
        """The number of values that must be above the threshold."""
        return self.periods if self.datapoints is None else self.datapoints


SUM_STATISTIC, MAX_STATISTIC = "SUM", "MAX"
_MAX_SOURCES = 10
"""The maximum number of metrics in an alarm on an expression: CloudWatch's limit."""


def alarm_specs(
    *,
    functions: Mapping[str, str],
    work_queues: Mapping[str, str],
    notices_queues: Mapping[str, str],
    dead_letters: Mapping[str, str],
    is_watch_on: bool,
    has_budgets: bool,
) -> Iterator[AlarmSpec]:
    """Yields all alarms.

    `functions`: function names by handler. `notices_queues`: queue names by channel. `work_queues`,
    `dead_letters`: queue names by the name that alarms use. All values are physical names.
    `is_watch_on`: whether running jobs are checked. `has_budgets`: whether budgets are.
    """
    yield from _function_alarms(functions)
    for name, queue in work_queues.items():
        yield _late_queue_alarm(name, [queue], QUEUE_MAX_AGE_S[name], _AGE_REASONS[name])
    for number, queues in enumerate(_groups_of_ten(list(notices_queues.values()))):
        name = f"Notices{number + 1 if number else ''}"
        yield _late_queue_alarm(name, queues, NOTICES_MAX_AGE_S, _NOTICES_AGE_REASON)
    for name, queue in dead_letters.items():
        yield _dead_letter_alarm(name, queue)
    yield from _audit_alarms()
    yield from _decision_alarms(functions["notify"])
    yield _failing_hours_alarm(
        "DeliverFailing",
        "for hours notices could not be posted on a channel, or could not be read, moved or marked",
        # A notice that is abandoned is a dead letter, which has its own alarm.
        MetricSource("DeliveryFailed", {"service": "deliver"}),
    )
    yield from _sweep_alarms(functions["sweep"])
    yield from _watch_alarms(functions["watch"], is_on=is_watch_on)
    if has_budgets:
        yield _budget_alarm()
    yield AlarmSpec(
        "DigestReport",
        "digest-report",
        (MetricSource("ReportNotWritten", {"service": "digest"}),),
        "a weekly digest was sent without its report, which could not be stored in S3",
        "the report is written once a week, and nothing writes it again",
    )


def _function_alarms(functions: Mapping[str, str]) -> Iterator[AlarmSpec]:
    """Yields the alarms of functions.

    Sweep, watch and digest have none here: after their retries they leave a dead letter. A timeout
    counts as an error. A message that crashed another function is delivered again.
    """
    message_handlers = [name for name in functions if name not in {"sweep", "watch", "digest"}]
    for handler in message_handlers:
        yield AlarmSpec(
            f"{handler.capitalize()}Errors",
            "function-errors",
            (MetricSource("Errors", {"FunctionName": functions[handler]}, LAMBDA),),
            f"{handler} crashed, or timed out, three times within an hour",
            "a crashed invocation is repeated; three failures in an hour do not end by themselves",
            period_s=HOUR_S,
            threshold=2,
        )
    yield AlarmSpec(
        "AuditThrottled",
        "function-throttled",
        (MetricSource("Throttles", {"FunctionName": functions["audit"]}, LAMBDA),),
        "Lambda has refused to start audits for most of two hours",
        "in an account with ten concurrent executions, a burst of jobs is throttled for an hour; "
        "a longer time means that other functions use up the account's concurrency; of sageaudit's "
        "own functions, audits need the most of it",
        period_s=15 * MINUTE_S,
        periods=8,
        datapoints=6,
    )
    yield AlarmSpec(
        "Defects",
        "unexpected-errors",
        tuple(MetricSource("Defects", {"service": handler}) for handler in message_handlers),
        "a function had an unexpected error: a defect in its code",
        "a retry fails in the same way; only a new version helps",
        expression=SUM_STATISTIC,
    )


def _groups_of_ten(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _MAX_SOURCES):
        yield names[start : start + _MAX_SOURCES]


def _late_queue_alarm(
    name: str, queues: list[str], seconds: int, threshold_reason: str
) -> AlarmSpec:
    metric = "ApproximateAgeOfOldestMessage"
    return AlarmSpec(
        f"{name}Late",
        "queue-late",
        tuple(MetricSource(metric, {"QueueName": queue}, SQS) for queue in queues),
        f"a message of {name} has waited for more than {seconds // HOUR_S} h",
        threshold_reason,
        expression=MAX_STATISTIC if len(queues) > 1 else None,
        statistic="Maximum",
        threshold=seconds,
        periods=3,
    )


def _dead_letter_alarm(name: str, queue: str) -> AlarmSpec:
    return AlarmSpec(
        f"{name}NotEmpty",
        "dead-letters",
        (MetricSource("ApproximateNumberOfMessagesVisible", {"QueueName": queue}, SQS),),
        f"{name} has messages, which are not tried again",
        "each message waits for a person, and is deleted 12 to 14 days after it became a dead "
        "letter",
        statistic="Maximum",
        period_s=MINUTE_S,
    )


def _failing_hours_alarm(name: str, description_text: str, source: MetricSource) -> AlarmSpec:
    """Returns an alarm on failures in most hours.

    The age of a queue's oldest message does not show such failures: it omits messages that were
    received three times.
    """
    return AlarmSpec(
        name,
        "failing",
        (source,),
        description_text,
        "a failure is tried again at least once an hour, for 3.5 days: failures in four of six "
        "hours do not end by themselves, and three days are left to repair the cause",
        period_s=HOUR_S,
        periods=6,
        datapoints=4,
    )


def _audit_alarms() -> Iterator[AlarmSpec]:
    audit = {"service": "audit"}
    # An event that is rejected is a dead letter, which has its own alarm.
    yield _failing_hours_alarm(
        "AuditFailing", "audits have failed for hours", MetricSource("AuditFailed", audit)
    )
    yield AlarmSpec(
        "JobsUnauditable",
        "unauditable",
        (MetricSource("JobsUnauditable", audit),),
        "three or more jobs within six hours could not be audited",
        "a single job that its user deleted immediately is normal; several have a common cause",
        period_s=6 * HOUR_S,
        threshold=2,
    )
    yield AlarmSpec(
        "RulesFailed",
        "rules-failed",
        (MetricSource("RuleFailed", audit),),
        "a rule failed with an error, so an audit lacks the rule's findings",
        "each failure is a defect in the code, which no retry repairs",
    )


def _decision_alarms(notify: str) -> Iterator[AlarmSpec]:
    yield _failing_hours_alarm(
        "NotifyFailing",
        "for hours notify could not decide whether to send messages about audits",
        MetricSource("NotDecided", {"service": "notify"}),
    )
    yield AlarmSpec(
        "StreamLate",
        "stream-late",
        (MetricSource("IteratorAge", {"FunctionName": notify}, LAMBDA),),
        "new audits have waited for more than 15 minutes for notify",
        "notify puts failed records on a queue, so a late stream means that notify does not read "
        "it, or that SQS accepts nothing; after 24 h the stream loses records that were not read",
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
        "jobs were audited in two periods of three hours, but notify was not invoked",
        "notify is invoked for each new audit; a disabled or broken mapping never invokes it, so "
        "that StreamLate has no value",
        expression="IF({0} > 0 AND FILL({1}, 0) < 1, 1, 0)",
        period_s=3 * HOUR_S,
        periods=2,
    )


def _silent_alarm(name: str, function: str, subject: str, consequence_text: str) -> AlarmSpec:
    return AlarmSpec(
        name,
        "sweep-silent",
        (MetricSource("Invocations", {"FunctionName": function}, LAMBDA),),
        f"{subject} no longer runs, so {consequence_text}",
        f"{subject} is invoked every 15 minutes; before its first invocation the metric has no "
        "values, so that a new installation raises no alarm",
        period_s=30 * MINUTE_S,
        alarm_if_no_data=True,
    )


def _watch_alarms(function: str, *, is_on: bool) -> Iterator[AlarmSpec]:
    watch = {"service": "watch"}
    if is_on:
        yield _silent_alarm("WatchSilent", function, "the watch", "running jobs are not checked")
    yield AlarmSpec(
        "WatchFailing",
        "watch-failing",
        (MetricSource("WatchFailed", watch), MetricSource("RunningJobsNotChecked", watch)),
        "for most of an hour running jobs could not be checked, or not all within the time",
        "a job is checked again 15 minutes later; three failures of four do not end by themselves",
        expression=SUM_STATISTIC,
        period_s=15 * MINUTE_S,
        periods=4,
        datapoints=3,
    )


def _budget_alarm() -> AlarmSpec:
    return AlarmSpec(
        "BudgetsFailing",
        "budgets-failing",
        (MetricSource("BudgetsFailed", {"service": "watch"}),),
        "budgets could not be checked for hours, so a message about one may be late",
        "a budget is checked again an hour later; three failures in six hours do not end by "
        "themselves",
        period_s=HOUR_S,
        periods=6,
        datapoints=3,
    )


def _sweep_alarms(function: str) -> Iterator[AlarmSpec]:
    sweep = {"service": "sweep"}
    yield AlarmSpec(
        "JobsMissing",
        "jobs-missing",
        (MetricSource("JobsMissing", sweep), MetricSource("LostEventsFound", sweep)),
        "jobs whose events arrived had no audit when it was due: three jobs at one sweep, or one "
        "job at three sweeps within an hour",
        "each sweep counts a job until it has an audit, for three hours; jobs whose lost events "
        "the sweep sends are not counted; more than two means that audits are not made",
        expression="{0} - FILL({1}, 0)",
        period_s=HOUR_S,
        threshold=2,
    )
    yield _silent_alarm("SweepSilent", function, "the sweep", "lost events are not noticed")
    yield AlarmSpec(
        "ListsLate",
        "lists-late",
        (MetricSource("OldestListSeconds", sweep),),
        "a list of jobs was not read to its end for more than two hours, although sweeps run",
        "with 1,000 accounts in two regions each list is read within 30 minutes; a list that is "
        "late for two hours is throttled, or its account has too many jobs",
        statistic="Maximum",
        period_s=15 * MINUTE_S,
        threshold=2 * HOUR_S,
        periods=2,
    )
    yield AlarmSpec(
        "EventsLost",
        "events-lost",
        (MetricSource("LostEventsFound", sweep),),
        "in three of the last six hours the sweep found jobs whose event never arrived",
        "the sweep repairs a single lost event; lost events in three different hours mean that the "
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
        "a throttled list is read again 15 minutes later; three failures of four do not end by "
        "themselves",
        period_s=15 * MINUTE_S,
        periods=4,
        datapoints=3,
    )
