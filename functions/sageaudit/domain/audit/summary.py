"""What is known of one audit without its document: what lists, sums and family rules read."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

from msgspec import Struct, field

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.audit.finding_document import Recommendation, value_text
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.resize.candidate import CostlierStep

_ZERO = Decimal(0)
_HOUR_S = 3600
_INTERRUPTED = "Interrupted"
"""The phase."""


class JobKey(Struct, frozen=True):
    """One run of a job: its ARN and creation time (a deleted job's name can be used again).

    `created_at` is the start time where the creation time is not known.
    """

    arn: str
    created_at: datetime


class AuditSummary(Struct, frozen=True, kw_only=True):
    """The newest audit of one job, as it is stored for lists, sums and the family's next runs.

    What is not known is None. The fields from `purchase` on (RUN_FIELDS) are those of the run
    itself, which its document does not have; a roll-up and a job that was never described have
    none of them. Before an audit is recorded it has no version, digest and ruleset.
    """

    key: JobKey
    version: int = 0
    settled: bool
    due_at: datetime | None = None
    last_modified_at: datetime
    job: str
    """Its name."""
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
    """None of a run that was not judged."""
    lost_usd: Decimal | None = None
    costliest_rule: str | None = None
    unauditable: str | None = None
    digest: str = ""
    """Equal for two audits with the same content."""
    ruleset: str = ""
    policy: str = ""
    family_version: int = 0
    finding_ids: tuple[str, ...] = ()
    """The rules that have a row."""
    judged: Judged | None = None
    spend_qualifier: SpendQualifier = SpendQualifier.UNKNOWN
    """How exactly the total is known."""
    estimated: bool = False
    """Whether the dollars rest on an estimated rate."""
    incomplete: bool = False
    """Whether the total lacks a part, such as storage without a price."""
    stamp: str | None = None
    """Changes with anything that a later run of the family may be judged by; None for a run that
    none is compared with."""
    findings_without_row: int | None = None
    """Findings that are in the document alone, as an audit has at most 40 rows; None where each has
    one. A list that shows this audit says so."""
    sums: Sums = Sums()
    """What this version adds to the daily sums."""
    severity: Severity | None = None
    """Of the most severe standing finding; None without one."""
    tags: Mapping[str, str | None] = field(default_factory=dict)
    """The policy's cost tags; None for one that the job does not have."""
    image: str | None = None
    duration_s: int | None = None
    """From start to end, and `waiting_s` from creation to start."""
    waiting_s: int | None = None
    instance_s: int | None = None
    """Billed seconds of all instances together."""
    gpu_s: int | None = None
    """Billed seconds of all GPUs together, and `idle_gpu_s` those of them that were not used; None
    where that could not be judged.
    """
    idle_gpu_s: int | None = None
    storage_usd: Decimal | None = None
    """Parts of the total, and `spot_saved_usd` what spot took off it. A roll-up has none."""
    warm_pool_usd: Decimal | None = None
    """Retained instances and their volumes."""
    spot_saved_usd: Decimal | None = None
    usage_quantities: Mapping[str, Decimal | None] | None = None
    """By usage type of the bill, hours or GB-months, and `usage_costs` in USD; None if unknown.
    Prepaid and free capacity is left out, as AWS bills it elsewhere. A roll-up has none."""
    usage_costs: Mapping[str, Decimal | None] | None = None
    instance: str | None = None
    """What it ran on, for people: `2 x ml.g5.xlarge`, or several groups joined by ` + `."""
    possible_usd: Decimal | None = None
    purchase: Purchase | None = None
    elapsed_s: Decimal | None = None
    billable_s: Decimal | None = None
    retained_s: Decimal | None = None
    """Of its warm pool, per instance."""
    instance_type: str | None = None
    """None where it ran on several, as `instance_count`."""
    instance_count: int | None = None
    fingerprint: str | None = None
    """The keyed hash of image, data, entry point and hyperparameters, if any."""
    is_data_pinned: bool | None = None
    """Its data cannot have changed under the same fingerprint."""
    has_artifact: bool | None = None
    reason: str | None = None
    """The kind of failure of a job that failed or was stopped."""
    phase_s: Mapping[str, Decimal] = field(default_factory=dict)
    """Seconds by phase name, billed or not, but without repeated downloads."""
    final_metrics: Mapping[str, Decimal] = field(default_factory=dict)
    """The last value of each algorithm metric."""
    rules_with_findings: tuple[str, ...] = ()
    """Rules with a standing finding that later runs are judged by."""
    use_digest: str | None = None
    """Of the minutes that a short run adds to the pools of later ones
    (`domain/usage/judged_use`); None for a run that adds none."""
    recommended_type: str | None = None
    """The type that a standing finding advised."""
    smallest_types: Mapping[str, Decimal] | None = None
    """Those that held the run and save, with how many times as long it takes there."""
    costlier_steps: tuple[CostlierStep, ...] | None = None
    """The steps to a smaller type that made the family's runs dearer until then."""
    first_point_s: Decimal | None = None
    """Of a processing or transform job, from its start to its first point, which comes after its
    download."""
    disk_gb: Decimal | None = None
    """Of the same jobs, the most used of a host's volume."""
    advised: tuple[Recommendation, ...] | None = None
    """The dearest first."""
    settings: Mapping[str, str] | None = None
    """By their paths, what else it ran with of the parameters that fixes name."""

    def is_due(self, now: datetime) -> bool:
        """Whether its audit is to be made again by now."""
        return self.due_at is not None and self.due_at <= now

    @property
    def arn(self) -> str | None:
        """None where a recording names none."""
        return self.key.arn if self.key.arn.startswith("arn:") else None

    @property
    def created_at(self) -> datetime:
        """When the run was created; its start where that is not known."""
        return self.key.created_at

    @property
    def findings(self) -> int:
        """How many rules found something."""
        return len(self.finding_ids)

    @property
    def waste_usd(self) -> Decimal | None:
        """The avoidable and lost dollars that are known; 0 only where both are."""
        sum_usd = (self.avoidable_usd or _ZERO) + (self.lost_usd or _ZERO)
        unknown = self.avoidable_usd is None or self.lost_usd is None
        return None if not sum_usd and unknown else sum_usd

    @property
    def waste_percent(self) -> Decimal | None:
        """Which part of the bill is avoidable or lost."""
        waste_usd, total_usd = self.waste_usd, self.total_usd
        return None if waste_usd is None or not total_usd else 100 * waste_usd / total_usd

    @property
    def lost_up_to_usd(self) -> Decimal | None:
        """What may be lost at most."""
        return self.sums.known_lost_up_to_usd

    @property
    def idle_usd(self) -> Decimal | None:
        """The value of its idle capacity."""
        return self.sums.known_idle_usd

    @property
    def possible_incomplete(self) -> bool:
        """Whether more may be possible than `possible_usd`: a finding's dollars are not known."""
        return bool(self.sums.possible_unknown)

    @property
    def upper_bound(self) -> bool:
        """Whether `total_usd` is an upper bound."""
        return bool(self.sums.upper_bounds)

    @property
    def interrupted_s(self) -> int | None:
        """For how long a spot job waited for capacity again."""
        seconds = self.phase_s.get(_INTERRUPTED)
        return None if seconds is None else round(seconds)

    @property
    def instance_hours(self) -> Decimal | None:
        """Billed, of all instances together."""
        return _hours(self.instance_s)

    @property
    def gpu_hours(self) -> Decimal | None:
        """The same of all GPUs, and `idle_gpu_hours` those that were not used; None where that
        could not be judged.
        """
        return _hours(self.gpu_s)

    @property
    def idle_gpu_hours(self) -> Decimal | None:
        """See `gpu_hours`."""
        return _hours(self.idle_gpu_s)

    @property
    def is_comparable(self) -> bool:
        """Whether later runs of its family may be compared with it: no roll-up, and no job that was
        never described.
        """
        return self.purchase is not None and not self.rollup

    def matching_recommendation(self, other: Recommendation) -> Recommendation | None:
        """What the run was advised of the same line as `other`; None where it was not."""
        return next((one for one in self.advised or () if one.line == other.line), None)

    def setting_value(self, path: str) -> str | None:
        """The value of a request's parameter that the run ran with, as text; None where unknown."""
        if path.endswith(".InstanceType"):
            return self.instance_type
        if path.endswith(".InstanceCount"):
            return None if self.instance_count is None else str(self.instance_count)
        if path == "EnableManagedSpotTraining":
            return None if self.purchase is None else value_text(self.purchase is Purchase.SPOT)
        return (self.settings or {}).get(path)


_STAMP_FIELDS = (
    *("purchase", "elapsed_s", "billable_s", "retained_s", "instance_type", "instance_count"),
    *("fingerprint", "is_data_pinned", "has_artifact", "reason", "phase_s", "final_metrics"),
    *("rules_with_findings", "use_digest", "recommended_type", "smallest_types", "costlier_steps"),
    *("first_point_s", "disk_gb"),
)
"""Fields of a run that later runs of its family are judged by."""
RUN_FIELDS = (*_STAMP_FIELDS, "advised", "settings")
"""What is known of a run beside its document."""


def comparison_stamp(run: AuditSummary) -> str:
    """Changes with anything that a later run of the family may be judged by.

    Not with the dollars that were found in the run itself, which say nothing of a later one, except
    for those of a short run, which its family sums.
    """
    known = {name: getattr(run, name) for name in _STAMP_FIELDS}
    known["rules_with_findings"] = sorted(run.rules_with_findings)
    summed_usd = run.avoidable_usd if run.use_digest else None
    ended_at = run.ended_at.astimezone(UTC).isoformat()
    own = (run.job, run.kind, run.status, ended_at, run.total_usd, summed_usd, run.estimated)
    parts = [*map(_exact, own), *((name, _exact(known[name])) for name in sorted(known))]
    return f"{zlib.crc32(repr(parts).encode()):08x}"


def _hours(seconds: int | None) -> Decimal | None:
    return None if seconds is None else Decimal(seconds) / _HOUR_S


def _exact(value: object) -> str:
    """Equal numbers have one text: 4.50 and 4.5."""
    if isinstance(value, Decimal):
        return str(value.normalize())
    if isinstance(value, Mapping):
        return repr([(name, _exact(value[name])) for name in sorted(value)])
    return str(value)
