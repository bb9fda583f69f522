"""Which alarms there are, and why each has its threshold.

An alarm is for a failure that no retry repairs, or for one that retries have not repaired in a time
in which they usually do: a person has to look. docs/runbook.md has an entry for each, by `entry`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sageaudit.adapters.aws.stack_outputs import in_words

MINUTE_S, HOUR_S = 60, 3_600
LAMBDA, QUEUES = "AWS/Lambda", "AWS/SQS"
STREAM_LATE_S = 15 * MINUTE_S
QUEUE_LATE_S = {"FinishedJobs": 2 * HOUR_S, "Decisions": HOUR_S}
NOTICES_LATE_S = 2 * HOUR_S
RUNBOOK = "docs/runbook.md"


@dataclass(frozen=True, slots=True)
class Watch:
    """One alarm: it is raised when `datapoints` of the last `periods` values are above `above`.

    `means` is its sentence for a person, `reason` why this threshold. An alarm of `silence` is
    raised instead when the metric has no value at all; it counts values (SampleCount). One with
    `while_counted` is raised where audits counted that metric, and `metric` is 0 or has no value.
    """

    name: str
    entry: str
    metric: str
    means: str
    reason: str
    namespace: str | None = None
    dimensions: Mapping[str, str] = field(default_factory=dict)
    statistic: str = "Sum"
    period_s: int = 5 * MINUTE_S
    above: float = 0
    periods: int = 1
    datapoints: int | None = None
    silence: bool = False
    while_counted: str | None = None

    @property
    def description(self) -> str:
        """What the alarm means and where its entry is, in one sentence."""
        return f"sageaudit: {self.means}; {RUNBOOK}#{self.entry} says what to do"

    @property
    def needed(self) -> int:
        """How many values must be above."""
        return self.periods if self.datapoints is None else self.datapoints


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """A function of the stack: its physical name and its timeout."""

    name: str
    timeout_s: int


def watches(
    *,
    functions: Mapping[str, FunctionFacts],
    work_queues: Mapping[str, str],
    notices_queues: Mapping[str, str],
    dead_letters: Mapping[str, str],
) -> Iterator[Watch]:
    """All alarms.

    `functions` is by the name of the handler, `notices_queues` by channel, the
    other queues by their name here; the values of the queues are their physical names.
    """
    for handler, function in functions.items():
        yield from _of_function(handler, function)
    for name, queue in work_queues.items():
        yield _late(name, queue, QUEUE_LATE_S[name])
    for channel, queue in notices_queues.items():
        yield _late(f"Notices{in_words(channel)}", queue, NOTICES_LATE_S)
    for name, queue in dead_letters.items():
        yield _dead_letters(name, queue)
    yield from _of_audits()
    yield from _of_decisions(functions["notify"].name)
    yield _failing(
        "DeliverFailing",
        "failing",
        "DeliveryFailed",
        "for hours notices could not be read, moved, or marked as sent",
        service="deliver",
    )
    for channel in notices_queues:
        yield from _of_channel(channel)
    yield from _of_sweep()
    yield Watch(
        "DigestReport",
        "digest-report",
        "ReportNotWritten",
        "a weekly digest was sent without its report, which S3 did not take",
        "the report is written once a week, and nothing writes it again",
        dimensions={"service": "digest"},
    )


def _of_function(handler: str, function: FunctionFacts) -> Iterator[Watch]:
    name, dimensions = handler.capitalize(), {"FunctionName": function.name}
    yield Watch(
        f"{name}Errors",
        "function-errors",
        "Errors",
        f"{handler} crashed, or timed out, three times within an hour",
        "what crashed is tried again; three failures in an hour do not pass by themselves",
        namespace=LAMBDA,
        dimensions=dimensions,
        period_s=HOUR_S,
        above=2,
    )
    yield Watch(
        f"{name}Throttled",
        "function-throttled",
        "Throttles",
        f"Lambda has refused to start {handler} for most of an hour",
        "a burst is throttled for minutes and then done; an hour means that the account's "
        "concurrency is used up",
        namespace=LAMBDA,
        dimensions=dimensions,
        period_s=15 * MINUTE_S,
        periods=4,
        datapoints=3,
    )
    yield Watch(
        f"{name}TimedOut",
        "function-timed-out",
        "Duration",
        f"{handler} ran until its timeout of {function.timeout_s} s twice within an hour",
        "after one slow answer of AWS the repeat succeeds; two time-outs in an hour have a cause",
        namespace=LAMBDA,
        dimensions=dimensions,
        statistic="Maximum",
        # A call that is ended at its timeout counts with the whole of it, or a little less.
        above=function.timeout_s * 1000 * 0.99,
        periods=12,
        datapoints=2,
    )
    yield Watch(
        f"{name}Defects",
        "unexpected-errors",
        "Defects",
        f"{handler} hit an unexpected error: a fault of its code",
        "a retry meets the same fault: it needs a new version",
        dimensions={"service": handler},
    )


def _late(name: str, queue: str, seconds: int) -> Watch:
    return Watch(
        f"{name}Late",
        "queue-late",
        "ApproximateAgeOfOldestMessage",
        f"a message of the queue {name} has waited for more than {seconds // HOUR_S} h",
        "a thousand jobs that end together are done after about half an hour",
        namespace=QUEUES,
        dimensions={"QueueName": queue},
        statistic="Maximum",
        above=seconds,
        periods=3,
    )


def _dead_letters(name: str, queue: str) -> Watch:
    return Watch(
        f"{name}NotEmpty",
        "dead-letters",
        "ApproximateNumberOfMessagesVisible",
        f"{name} has messages that are not tried again",
        "each one waits for a person, and is deleted after 14 days",
        namespace=QUEUES,
        dimensions={"QueueName": queue},
        statistic="Maximum",
        period_s=MINUTE_S,
    )


def _failing(name: str, entry: str, metric: str, means: str, **dimensions: str) -> Watch:
    """Failures in most hours: the age of a queue leaves out what was received three times."""
    return Watch(
        name,
        entry,
        metric,
        means,
        "what fails is tried again at least once an hour, for 3.5 days: failures in four of six "
        "hours do not pass by themselves, and three days are left to repair the cause",
        dimensions=dimensions,
        period_s=HOUR_S,
        periods=6,
        datapoints=4,
    )


def _of_audits() -> Iterator[Watch]:
    audit = {"service": "audit"}
    yield _failing(
        "AuditFailing", "failing", "AuditFailed", "audits have failed for hours", **audit
    )
    # The queue's alarm is not raised again while older messages are in the queue.
    yield Watch(
        "EventsRejected",
        "events-rejected",
        "RejectedEvents",
        "events were malformed, forged, or of an account that is not allowed, and were refused",
        "no event of a job in your accounts is refused: each one is a mistake or an attack",
        dimensions=audit,
    )
    yield Watch(
        "JobsUnauditable",
        "unauditable",
        "JobsUnauditable",
        "three or more jobs within six hours could not be audited",
        "one job that its user deleted at once is normal; several have a common cause",
        dimensions=audit,
        period_s=6 * HOUR_S,
        above=2,
    )
    yield Watch(
        "RulesFailed",
        "rules-failed",
        "RuleFailed",
        "a rule ended with an error, so an audit lacks this rule's findings",
        "each one is a fault of the code, and no retry finds the dollars",
        dimensions=audit,
    )


def _of_decisions(notify: str) -> Iterator[Watch]:
    yield _failing(
        "NotifyFailing",
        "failing",
        "NotDecided",
        "for hours it could not be decided whether to post a message about an audit",
        service="notify",
    )
    yield Watch(
        "StreamLate",
        "stream-late",
        "IteratorAge",
        "new audits have waited for more than 15 minutes for notify",
        "notify sets aside what fails, so a stream that is late is not read, or SQS takes nothing; "
        "after 24 h the stream has lost what was not read",
        namespace=LAMBDA,
        dimensions={"FunctionName": notify},
        statistic="Maximum",
        period_s=MINUTE_S,
        above=STREAM_LATE_S * 1000,
        periods=3,
    )

    yield Watch(
        "StreamNotRead",
        "stream-late",
        "Invocations",
        "jobs were audited within six hours, and notify was never invoked",
        "notify is invoked for each new audit; a mapping that is disabled or broken invokes "
        "nothing, so that StreamLate has no value",
        namespace=LAMBDA,
        dimensions={"FunctionName": notify},
        period_s=6 * HOUR_S,
        while_counted="JobsAudited",
    )


def _of_channel(channel: str) -> Iterator[Watch]:
    name, dimensions = channel.capitalize(), {"service": "deliver", "channel": channel}
    yield Watch(
        f"{name}Broken",
        "channel-broken",
        "NotifyFailed",
        f"{channel} refused a message, which is not tried again",
        "nobody gets this message until somebody sends it again",
        dimensions=dimensions,
    )
    yield Watch(
        f"{name}Unknown",
        "channel-unknown",
        "NotifyUnknown",
        f"nobody knows whether a message arrived on {channel}, and it is not tried again",
        "somebody has to look whether it is there",
        dimensions=dimensions,
    )
    yield _failing(
        f"{name}Failing",
        "failing",
        "DeliveryFailed",
        f"posts on {channel} have failed in four of the last six hours",
        **dimensions,
    )


def _of_sweep() -> Iterator[Watch]:
    sweep = {"service": "sweep"}
    yield Watch(
        "JobsMissing",
        "jobs-missing",
        "JobsMissing",
        "jobs ended and had no audit when it was time for it: three at one sweep, or one at three "
        "sweeps within an hour",
        "a sweep counts a job until it has an audit, for three hours, and sends a lost event "
        "itself: one lost event is counted once; more mean that events or audits do not come",
        dimensions=sweep,
        period_s=HOUR_S,
        above=2,
    )
    yield Watch(
        "SweepSilent",
        "sweep-silent",
        "JobsEnded",
        "the sweep has not listed jobs for an hour, so lost events are not noticed",
        "it runs every 15 minutes and sends a value even if no job ended; two half hours without "
        "one are four sweeps that failed",
        dimensions=sweep,
        statistic="SampleCount",
        period_s=30 * MINUTE_S,
        periods=2,
        silence=True,
    )
    yield Watch(
        "EventsLost",
        "events-lost",
        "ReconcilerFound",
        "in three of the last six hours the sweep found jobs whose event never came",
        "the sweep repairs a single lost event; in three different hours it means that the "
        "delivery of events is broken",
        dimensions=sweep,
        period_s=HOUR_S,
        periods=6,
        datapoints=3,
    )
    yield Watch(
        "SweepFailing",
        "failing",
        "SweepFailed",
        "for most of an hour the sweep could not list jobs or send what it found",
        "a throttled list is asked again 15 minutes later; three failures of four do not pass",
        dimensions=sweep,
        period_s=15 * MINUTE_S,
        periods=4,
        datapoints=3,
    )
