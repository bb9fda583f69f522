"""The summary of an audit: what lists, sums and family rules read instead of the document."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

from msgspec import Struct, field

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.audit.finding_document import RunRecommendation, value_text
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.resize.candidate import CostlierStep

_ZERO = Decimal(0)
_HOUR_S = 3600
_INTERRUPTED = "Interrupted"
"""The phase in which a spot job waits for capacity again."""


class JobKey(Struct, frozen=True):
    """The key of one run: the job's ARN and creation time, because names can be used again.

    `created_at`: the start time if the creation time is unknown.
    """

    arn: str
    created_at: datetime


class AuditSummary(Struct, frozen=True, kw_only=True):
    """The newest audit of one job, as lists, sums and the family's later runs read it.

    None means unknown. The fields in RUN_FIELDS are about the run itself, and not in the audit's
    document. Roll-ups, and jobs that were never described, do not have them. Version, digest and
    ruleset are set when the audit is recorded.
    """

    key: JobKey
    version: int = 0
    settled: bool
    due_at: datetime | None = None
    last_modified_at: datetime
    job: str
    """The job's name."""
    kind: str
    status: str
    account: str
    region: str
    family: str
    owner: str | None = None
    ended_at: datetime
    rollup: bool
    total_usd: Decimal | None = None
    avoidable_usd: Decimal | None = None
    """Avoidable dollars; None if the run was not judged."""
    lost_usd: Decimal | None = None
    costliest_rule: str | None = None
    unauditable: str | None = None
    """Why the job could not be audited at all; None for an audited job."""
    digest: str = ""
    """A digest that is equal for two audits with the same content."""
    ruleset: str = ""
    policy: str = ""
    family_version: int = 0
    finding_ids: tuple[str, ...] = ()
    """The ids of the rules whose findings have rows of their own."""
    judged: Judged | None = None
    never_started: bool = False
    """Whether the job failed or was stopped before its start. It has no start time, and cost $0."""
    spend_qualifier: SpendQualifier = SpendQualifier.UNKNOWN
    """How exactly the total is known."""
    estimated: bool = False
    incomplete: bool = False
    """Whether the total lacks a part, such as storage without a price."""
    stamp: str | None = None
    """A checksum of the run's facts that audits of later family runs use. If it changes, those
    audits are out of date. None if no later run is compared with this run."""
    findings_without_row: int | None = None
    """The number of findings without a row, as an audit has at most 40 rows; None if each has a
    row."""
    sums: Sums = Sums()
    """What this version adds to the daily sums."""
    severity: Severity | None = None
    """The severity of the most severe standing finding; None without a finding."""
    tags: Mapping[str, str | None] = field(default_factory=dict)
    """The values of the policy's cost tags; None for a tag that the job lacks."""
    image: str | None = None
    duration_s: int | None = None
    """The seconds from start to end."""
    waiting_s: int | None = None
    """The seconds from creation to start; of a job that never started, those until its end."""
    instance_s: int | None = None
    """Billed seconds of all instances together."""
    gpu_s: int | None = None
    """Billed seconds of all GPUs together."""
    idle_gpu_s: int | None = None
    """The unused part of `gpu_s`; None if not judged."""
    storage_usd: Decimal | None = None
    """The cost of the volumes, a part of the total; None for a roll-up."""
    warm_pool_usd: Decimal | None = None
    """The cost of retained instances and their volumes."""
    spot_saved_usd: Decimal | None = None
    """What Spot saved, in USD; None for a roll-up."""
    usage_quantities: Mapping[str, Decimal | None] | None = None
    """Hours or GB-months by usage type; None for a roll-up. Prepaid and free capacity is not
    included."""
    usage_costs: Mapping[str, Decimal | None] | None = None
    """USD by usage type; None for an unknown cost."""
    instance: str | None = None
    """The instances, for people: `2 x ml.g5.xlarge`, or several groups joined by ` + `."""
    possible_usd: Decimal | None = None
    purchase: Purchase | None = None
    elapsed_s: Decimal | None = None
    billable_s: Decimal | None = None
    retained_s: Decimal | None = None
    """The seconds for which the warm pool was retained, per instance."""
    instance_type: str | None = None
    """The instance type; None if the run used several types."""
    instance_count: int | None = None
    fingerprint: str | None = None
    """The keyed hash of image, data, entry point and hyperparameters, if any."""
    is_data_pinned: bool | None = None
    """Whether the same fingerprint means the same data."""
    has_artifact: bool | None = None
    reason: str | None = None
    """The kind of failure of a job that failed or was stopped."""
    phase_s: Mapping[str, Decimal] = field(default_factory=dict)
    """Seconds by phase name, billed or not, but without repeated downloads."""
    final_metrics: Mapping[str, Decimal] = field(default_factory=dict)
    """The last value of each algorithm metric, by name."""
    rules_with_findings: tuple[str, ...] = ()
    """The rules with a standing finding that affects how later runs are judged."""
    use_digest: str | None = None
    """A digest of the minutes that a short run adds to the pools of later runs; None for other
    runs."""
    recommended_type: str | None = None
    """The type that a standing finding recommends."""
    smallest_types: Mapping[str, Decimal] | None = None
    """Smaller types that fit the run and cost less, with the run-time factor on each."""
    costlier_steps: tuple[CostlierStep, ...] | None = None
    """The steps to a smaller type that have made the family's runs cost more."""
    first_point_s: Decimal | None = None
    """The seconds from the start of a processing or transform job to its first metric point, which
    follows the download."""
    disk_gb: Decimal | None = None
    """The most GB used of a host's volume, for a processing or transform job."""
    recommendations: tuple[RunRecommendation, ...] | None = None
    """The run's recommendations, the largest first."""
    settings: Mapping[str, str] | None = None
    """The values of other parameters that fixes name, by path."""

    def is_due(self, now: datetime) -> bool:
        """Returns whether the job is due to be audited again."""
        return self.due_at is not None and self.due_at <= now

    @property
    def arn(self) -> str | None:
        """The job's ARN; None if a recording has none."""
        return self.key.arn if self.key.arn.startswith("arn:") else None

    @property
    def created_at(self) -> datetime:
        """When the run was created; its start if the creation time is unknown."""
        return self.key.created_at

    @property
    def findings(self) -> int:
        """The number of findings that have a row."""
        return len(self.finding_ids)

    @property
    def waste_usd(self) -> Decimal | None:
        """The known avoidable and lost dollars together.

        None if they are 0 and one of them is unknown.
        """
        sum_usd = (self.avoidable_usd or _ZERO) + (self.lost_usd or _ZERO)
        is_unknown = self.avoidable_usd is None or self.lost_usd is None
        return None if not sum_usd and is_unknown else sum_usd

    @property
    def waste_percent(self) -> Decimal | None:
        """The percentage of the bill that is avoidable or lost."""
        waste_usd, total_usd = self.waste_usd, self.total_usd
        return None if waste_usd is None or not total_usd else 100 * waste_usd / total_usd

    @property
    def lost_up_to_usd(self) -> Decimal | None:
        """The maximum USD that may be lost; None if unknown."""
        return self.sums.known_lost_up_to_usd

    @property
    def idle_usd(self) -> Decimal | None:
        """The value of the idle capacity in USD; None if unknown."""
        return self.sums.known_idle_usd

    @property
    def possible_incomplete(self) -> bool:
        """Whether more may be possible, because a finding's dollars are unknown."""
        return bool(self.sums.possible_unknown)

    @property
    def upper_bound(self) -> bool:
        """Whether `total_usd` is an upper bound."""
        return bool(self.sums.upper_bounds)

    @property
    def interrupted_s(self) -> int | None:
        """The seconds for which a spot job waited for capacity again."""
        seconds = self.phase_s.get(_INTERRUPTED)
        return None if seconds is None else round(seconds)

    @property
    def instance_hours(self) -> Decimal | None:
        """Billed hours of all instances together."""
        return _hours(self.instance_s)

    @property
    def gpu_hours(self) -> Decimal | None:
        """Billed hours of all GPUs together."""
        return _hours(self.gpu_s)

    @property
    def idle_gpu_hours(self) -> Decimal | None:
        """The unused part of `gpu_hours`; None if not judged."""
        return _hours(self.idle_gpu_s)

    @property
    def is_comparable(self) -> bool:
        """Whether later runs may be compared with this run.

        False for a roll-up, or if the job was never described.
        """
        return self.purchase is not None and not self.rollup

    def matching_recommendation(self, other: RunRecommendation) -> RunRecommendation | None:
        """Returns the run's recommendation for the same rule and parameter; None without one."""
        return next((row for row in self.recommendations or () if row.line == other.line), None)

    def setting_value(self, path: str) -> str | None:
        """Returns the run's value of a request parameter as text; None if unknown."""
        if path.endswith(".InstanceType"):
            return self.instance_type
        if path.endswith(".InstanceCount"):
            return None if self.instance_count is None else str(self.instance_count)
        if path == "EnableManagedSpotTraining":
            return None if self.purchase is None else value_text(self.purchase is Purchase.SPOT)
        return (self.settings or {}).get(path)


class PartialSummary(AuditSummary, frozen=True, kw_only=True):
    """A summary of which only some fields were read. The defaults of the others mean nothing."""

    key: JobKey = JobKey("", datetime(1970, 1, 1, tzinfo=UTC))
    settled: bool = False
    last_modified_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    job: str = ""
    kind: str = ""
    status: str = ""
    account: str = ""
    region: str = ""
    family: str = ""
    ended_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    rollup: bool = False


_STAMP_FIELDS = (
    *("purchase", "elapsed_s", "billable_s", "retained_s", "instance_type", "instance_count"),
    *("fingerprint", "is_data_pinned", "has_artifact", "reason", "phase_s", "final_metrics"),
    *("rules_with_findings", "use_digest", "recommended_type", "smallest_types", "costlier_steps"),
    *("first_point_s", "disk_gb"),
)
"""The fields of a run that audits of later family runs use."""
COMPARED_FIELDS = frozenset(
    {"key", "settled", "last_modified_at", "job", "kind", "status", "account", "region", "family"}
    | {"ended_at", "rollup", "total_usd", "avoidable_usd", "estimated", "stamp", *_STAMP_FIELDS}
)
"""What audits of later family runs read of a run: the facts in its stamp, and required fields."""
RUN_FIELDS = (*_STAMP_FIELDS, "recommendations", "settings")
"""The fields of a summary that the audit's document does not have."""


def comparison_stamp(run: AuditSummary) -> str:
    """Returns a checksum of the run's facts that audits of later family runs use.

    It includes the avoidable dollars of a short run, because later audits sum them.
    """
    fields = {name: getattr(run, name) for name in _STAMP_FIELDS}
    fields["rules_with_findings"] = sorted(run.rules_with_findings)
    summed_usd = run.avoidable_usd if run.use_digest else None
    ended_at = run.ended_at.astimezone(UTC).isoformat()
    own = (run.job, run.kind, run.status, ended_at, run.total_usd, summed_usd, run.estimated)
    parts = [
        *map(_exact_text, own),
        *((name, _exact_text(fields[name])) for name in sorted(fields)),
    ]
    return f"{zlib.crc32(repr(parts).encode()):08x}"


def _hours(seconds: int | None) -> Decimal | None:
    return None if seconds is None else Decimal(seconds) / _HOUR_S


def _exact_text(value: object) -> str:
    """Returns an equal text for equal numbers, such as 4.50 and 4.5."""
    if isinstance(value, Decimal):
        return str(value.normalize())
    if isinstance(value, Mapping):
        return repr([(name, _exact_text(value[name])) for name in sorted(value)])
    return str(value)
