"""The table's keys and indexes. docs/data-model.md describes the query of each.

A retained table's keys cannot change, and one update can add only one index. So all planned indexes
exist from the start. `adapters/history/codec.py` has the keys that sort runs.
"""

from __future__ import annotations

import hashlib
import zlib
from datetime import date, datetime, timedelta

from msgspec import Struct

from sageaudit.adapters.history.codec import epoch_s, key_part, moment_text, run_key
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.audit.sums import Scope, SumRow
from sageaudit.domain.job.ref import AccountRegion

HEAD_SK = "HEAD"
DETAIL_SK = "DETAIL"
FINDING_PREFIX = "FINDING#"
DAY_SHARDS = 8
"""The number of shards of a day's list. 1,000 jobs may end in a minute."""
DUE_SHARDS = 4
SUMS_SHARDS = 8
"""The number of shards of an account's sums of a day."""
SUMS_ACCOUNTS_PK = "SUM#ACCOUNTS"
"""The directory of accounts with sums, for queries without an account."""
SWEEP_PK = "SWEEP"
INSTALLED_SK = "INSTALLED"
SWEEP_LEASE_SK = "TURN"
SWEEP_LIST_PREFIX = "LIST#"
MEMBERS_PK = "MEMBERS"
WAITING_PREFIX = "WAITING#"
"""Begins the partition keys of events that wait until a member can be read."""
RECOMMENDATIONS_PK = "ADVICE"
"""The partition of what people decided about recommendations."""
_MAX_REGION_LENGTH = 64
PARTITION_KEY = "pk"
SORT_KEY = "sk"
TTL_ATTRIBUTE = "expires_at"
RETENTION_DAYS = 45
"""Days to keep notices, their states and the counts of hours.

It is longer than a redelivery can take: a stream keeps records for a day, SQS for at most 14 days.
"""
AUDIT_PREFIX = "AUDIT#"
"""Begins the sort keys of versions, which never change. `notify` receives their INSERTs."""
NOTICE_PREFIX = "NOTICE#"
"""Begins the sort keys of notices. `notify` receives their INSERTs."""
JOB_PREFIX = "JOB#"
"""Begins the partition keys of runs: their audits, findings and details."""
FAMILY_RUNS_PREFIX = "RUNS#"
"""Begins the partition keys of families' runs."""
SUMS_PREFIX = "SUM#"
"""Begins the partition keys of daily sums, and SUMS_ACCOUNTS_PK."""
RUN_ALERTS_PREFIX = "ALERT#"
"""Begins the partition keys of the last alerts of runs, and of the notices about runs."""
FAMILY_ALERTS_PREFIX = "ALERTS#"
"""Begins the partition keys of the alerts of families and pipelines."""
DIGEST_PREFIX = "DIGEST#"
"""Begins the partition keys of digests, the only items that `digest` writes."""
WATCH_PREFIX = "WATCH#"
"""Begins the partition keys of running jobs' states."""
BUDGET_PREFIX = "BUDGET#"
"""Begins the partition keys of a budget's messages in a month."""
PRICE_PREFIX = "PRICE#"
DELIVERY_PREFIX = "DELIVERY#"
"""Begins the partition keys of what `deliver` writes about a notice."""
CHANNEL_PREFIX = "CHANNEL#"
"""Begins the partition keys of what `deliver` writes about a channel."""


def kept_until(now: datetime) -> int:
    """Returns when an item written at `now` expires, in epoch seconds."""
    return epoch_s(now + timedelta(days=RETENTION_DAYS))


def job_pk(key: JobKey) -> str:
    """Returns the partition key of all items of a run, except its alerts."""
    return f"{JOB_PREFIX}{run_key(key)}"


def audit_sk(version: int) -> str:
    """Returns the sort key of a version. The keys sort by version up to 99,999."""
    return f"{AUDIT_PREFIX}{version:05d}"


def finding_sk(rule_id: str) -> str:
    """Returns the sort key of a rule's finding."""
    return f"{FINDING_PREFIX}{rule_id}"


def month_text(day: date) -> str:
    """Returns a day's month as YYYY-MM."""
    return day.isoformat()[:7]


def day_pk(ended_at: datetime, key: JobKey) -> str:
    """Returns the shard of the day's list that this run belongs to."""
    return f"{moment_text(ended_at)[:10]}#{_shard(key, DAY_SHARDS)}"


def day_pks(day: date) -> tuple[str, ...]:
    """Returns all shards of a day's list."""
    return tuple(f"{day.isoformat()}#{shard}" for shard in range(DAY_SHARDS))


def due_pk(key: JobKey) -> str:
    """Returns the shard of the recheck list that this run belongs to."""
    return f"DUE#{_shard(key, DUE_SHARDS)}"


def due_pks() -> tuple[str, ...]:
    """Returns all shards of the recheck list."""
    return tuple(f"DUE#{shard}" for shard in range(DUE_SHARDS))


def family_pk(account: str, region: str, family: str) -> str:
    """Returns the key of a family's list in an account and region.

    The name is last, as it may contain "#".
    """
    return f"{key_part(account)}#{key_part(region)}#{key_part(family)}"


def family_runs_pk(account: str, region: str, family: str) -> str:
    """Returns the key of a family's runs. They are sorted by their ends."""
    return f"{FAMILY_RUNS_PREFIX}{family_pk(account, region, family)}"


def owner_pk(owner: str) -> str:
    """Returns the key of an owner's jobs."""
    return f"OWNER#{key_part(owner)}"


def name_pk(name: str) -> str:
    """Returns the key of the runs with a job name. It is in lower case, as in ARNs."""
    return f"NAME#{key_part(name.lower())}"


def account_pk(account: str) -> str:
    """Returns the key of an account's jobs."""
    return key_part(account)


def rule_pk(rule: str) -> str:
    """Returns the key of a rule's findings."""
    return key_part(rule)


def sums_pk(account: str, month: str) -> str:
    """Returns the partition key of an account's daily sums in a month (YYYY-MM)."""
    return f"{SUMS_PREFIX}{key_part(account)}#{month}"


def sums_sk(row: SumRow, shard: int) -> str:
    """Returns the sort key of one shard of a day's sums. Days sort within a name and region.

    A region with "#" is hashed: a name may contain "#" too, and two names must not share a key.
    """
    region = key_part(row.region)
    if "#" in row.region or len(row.region) > _MAX_REGION_LENGTH:
        region = "~" + hashlib.sha256(row.region.encode("utf-8", "replace")).hexdigest()
    return f"{row.scope.value}#{key_part(row.name or '')}#{region}#{row.day.isoformat()}#{shard}"


def sums_key_range(scope: Scope, name: str | None) -> tuple[str, str]:
    """Returns keys before and after all sort keys of a scope, or of one name in it."""
    prefix = scope.value if name is None else f"{scope.value}#{key_part(name)}"
    return f"{prefix}#", f"{prefix}$"


def sums_shard(key: JobKey, scope: Scope, try_count: int) -> int:
    """Returns the shard to which a run adds. Readers add up all shards.

    An account's sums use all shards. Other sums begin with the first shard, so that a rarely used
    family has one item a day. Each attempt after a conflict (`try_count`) uses another shard.
    """
    if scope is not Scope.ACCOUNT and try_count == 0:
        return 0
    return (_shard(key, SUMS_SHARDS) + try_count) % SUMS_SHARDS


def sums_account_sk(month: str, account: str) -> str:
    """Returns an account's sort key in the directory of accounts with sums.

    The keys sort by month.
    """
    return f"{month}#{key_part(account)}"


def sums_directory_range(since: date, until: date) -> tuple[str, str]:
    """Returns keys before and after the directory's sort keys of these months."""
    return f"{month_text(since)}#", f"{month_text(until)}$"


def family_alerts_pk(subject: str) -> str:
    """Returns the partition key of the alerts of a family or a pipeline."""
    return f"{FAMILY_ALERTS_PREFIX}{key_part(subject)}"


def decision_sk(decision: Decision) -> str:
    """Returns the sort key of a decision about a recommendation."""
    return f"{decision.recommendation_id}#{moment_text(decision.at)}"


def run_alerts_pk(run: str) -> str:
    """Returns the partition key of a run's last alert and of the notices about the run."""
    return f"{RUN_ALERTS_PREFIX}{key_part(run)}"


def notice_sk(version: int, channel: str) -> str:
    """Returns the sort key of a channel's notice about a version of the run's audit."""
    return f"{NOTICE_PREFIX}{version:05d}#{channel}"


def digest_pk(last_day: date) -> str:
    """Returns the partition key of a week's digest and its notices."""
    return f"{DIGEST_PREFIX}{last_day.isoformat()}"


def watch_pk(key: JobKey) -> str:
    """Returns the partition key of a running job's state and of the notices about it."""
    return f"{WATCH_PREFIX}{run_key(key)}"


def budget_pk(month: str, selector: tuple[str, str]) -> str:
    """Returns the partition key of what was sent about a budget in a month (YYYY-MM)."""
    kind, name = selector
    return f"{BUDGET_PREFIX}{month}#{kind}#{key_part(name)}"


def delivery_pk(notice_id: str) -> str:
    """Returns the partition key of a notice's delivery."""
    return f"{DELIVERY_PREFIX}{key_part(notice_id)}"


def channel_pk(channel: str) -> str:
    """Returns the partition key of what `deliver` and `notify` store about a channel."""
    return f"{CHANNEL_PREFIX}{key_part(channel)}"


def hour_sk(began_at: datetime) -> str:
    """Returns the sort key of a channel's messages in one clock hour."""
    return f"HOUR#{moment_text(began_at)[:13]}"


def price_pk(region: str, component: str) -> str:
    """Returns the partition key of the rates of a region and component."""
    return f"{PRICE_PREFIX}{key_part(region)}#{key_part(component)}"


def swept_region_sk(account_region: AccountRegion) -> str:
    """Returns the sort key of the lists of an account and region."""
    return f"{SWEEP_LIST_PREFIX}{member_sk(account_region)}"


def member_sk(account_region: AccountRegion) -> str:
    """Returns the sort key of a member."""
    return f"{account_region.account}#{account_region.region}"


def waiting_pk(account_region: AccountRegion) -> str:
    """Returns the partition key of the events that wait until a member can be read."""
    return f"{WAITING_PREFIX}{member_sk(account_region)}"


def sent_event_sk(key: JobKey) -> str:
    """Returns the sort key of the record that a run's event was sent or arrived."""
    return f"SENT#{run_key(key)}"


def _shard(key: JobKey, shards: int) -> int:
    # CRC-32 is used because Python's `hash` differs between processes.
    return zlib.crc32(key.arn.encode("utf-8", "replace")) % shards


class Index(Struct, frozen=True):
    """A global secondary index with string keys. It projects all attributes.

    INCLUDE is limited to 20 attributes per index and 100 per table; a summary has about 45.
    """

    name: str
    partition_key: str
    sort_key: str = "ended_sk"


TABLE = Index("", PARTITION_KEY, SORT_KEY)
INDEXES = (
    Index("by-day", "day_pk"),
    Index("by-family", "family_pk"),
    Index("by-rule", "rule_pk"),
    Index("by-owner", "owner_pk"),
    Index("by-name", "name_pk"),
    Index("by-account", "account_pk"),
    Index("due", "due_pk", "due_sk"),
)
