"""A schedule -> the weekly digest in the table, written once, with a notice for each channel.

The schedule's event has no content: the digest is about the last finished week. Errors
are raised: Lambda retries twice, then an alarm is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from msgspec import Struct

from sageaudit.adapters.aws.clients import TimeLimitedClients, client, new_session
from sageaudit.adapters.channels.services import channel_writers
from sageaudit.adapters.files import stored_policy
from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.member_registry import DynamoMemberRegistry
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.adapters.lambda_runtime.batch import DEFECTS, Handler, entry_point
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.adapters.lambda_runtime.settings import DigestSettings
from sageaudit.domain.members import AuditScope
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import AwsError, MalformedData
from sageaudit.output.text.links import HistoryLocation
from sageaudit.workflows.digest import DigestDependencies, WriteReport, write_digest

_WRITE_RESERVE_MS = 60_000
"""The time that the report must leave for writing a digest without it."""


class Digester(Struct, frozen=True):
    """The digest function: writes at most one digest for each event."""

    deps: DigestDependencies
    clock: Callable[[], datetime]
    report: RecordReport
    begin: Callable[[float], None] = lambda _: None

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Returns the last day of the digest; null if no digest was written.

        Logs and raises every error.
        """
        del event
        self.report.start_invocation(context)
        self.begin(context.get_remaining_time_in_millis())
        try:
            return {"digest": self._digest()}
        except (AwsError, MalformedData) as error:
            self.report.error("digest failed", error=type(error).__name__, reason=str(error))
            raise
        except Exception as error:
            self.report.count(DEFECTS)
            self.report.defect("digest failed", error)
            raise
        finally:
            self.report.flush()

    def _digest(self) -> str | None:
        outcome = write_digest(self.deps, now=self.clock())
        self.report.unreadable(self.deps.history.take_unreadable())
        if isinstance(outcome, str):
            self.report.info("no digest", reason=outcome)
            return None
        if outcome.routes_without_digest:
            self.report.info("routes without a digest", routes=outcome.routes_without_digest)
        if outcome.report_error is not None:
            self.report.count("ReportNotWritten")
            self.report.error("report not written", reason=str(outcome.report_error))
        self.report.info("digest written", last_day=str(outcome.last_day))
        return str(outcome.last_day)


def build(
    environ: Mapping[str, str],
    *,
    session: Any = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    policy: Policy | None = None,
) -> Handler:
    """Builds the Lambda function. Raises BadSettings or BadPolicy."""
    settings, session = DigestSettings.from_env(environ), session or new_session()
    time_limit = TimeLimitedClients(session, clock)
    report_time_limit = TimeLimitedClients(session, clock)
    dynamodb = client(time_limit, "dynamodb")
    history = DynamoHistory(dynamodb, settings.table_name)

    def begin(remaining_ms: float) -> None:
        time_limit.start(remaining_ms)
        report_time_limit.start(remaining_ms - _WRITE_RESERVE_MS)

    policy = policy or stored_policy.load()
    bucket = policy.digest and policy.digest.report_bucket
    deps = DigestDependencies(
        history=history,
        ledger=DynamoAlertLedger(dynamodb, settings.table_name),
        decisions=history,
        policy=policy,
        writers=channel_writers(policy.channels),
        registry=DynamoMemberRegistry(dynamodb, settings.table_name),
        is_audited=AuditScope(settings.home, policy.members).includes,
        write_report=_report_writer(settings, bucket, report_time_limit) if bucket else None,
        history_location=HistoryLocation.for_table(settings.table_name, settings.region),
        installed_at=DynamoSweepStore(dynamodb, settings.table_name, clock=clock).installed_at,
    )
    return Digester(deps, clock, RecordReport(environ), begin)


def _report_writer(
    settings: DigestSettings, bucket: str, time_limit: TimeLimitedClients
) -> WriteReport:
    # Only a digest with a bucket has a report, whose modules are a third of the others.
    from sageaudit.adapters.aws.report_store import S3ReportStore  # noqa: PLC0415
    from sageaudit.adapters.prices import packaged  # noqa: PLC0415
    from sageaudit.domain.advice.advice import MAX_FAMILY_RUNS  # noqa: PLC0415
    from sageaudit.workflows.digest_report import store_report  # noqa: PLC0415
    from sageaudit.workflows.report import ReportSource  # noqa: PLC0415

    history = DynamoHistory(client(time_limit, "dynamodb"), settings.table_name)
    source = ReportSource(history, packaged.instance_types(), max_runs=MAX_FAMILY_RUNS)
    s3 = client(time_limit, "s3")
    store = S3ReportStore(s3, bucket, settings.account_id, settings.report_key_arn)
    return partial(store_report, source, store)


handler = entry_point(build)
