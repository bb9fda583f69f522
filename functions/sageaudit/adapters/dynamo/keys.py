"""Partition and sort keys of all items. docs/data-model.md describes the query each one serves.

Times in keys are in UTC and of fixed width, so that keys sort by time.
"""

from __future__ import annotations

import hashlib
import zlib
from datetime import UTC, date, datetime, timedelta

from sageaudit.adapters.dynamo.table import AUDIT_PREFIX
from sageaudit.domain.audit.record import JobKey, Position
from sageaudit.domain.audit.sums import Scope, SumRow

HEAD_SK = "HEAD"
DETAIL_SK = "DETAIL"
FINDING_PREFIX = "FINDING#"
DAY_SHARDS = 8
"""A sweep may end 1,000 jobs a minute; without shards, all rows would go to one partition."""
DUE_SHARDS = 4
SUMS_SHARDS = 8
"""All audits of an account in one day add to one of these; see `sums_shard`."""
SUMS_ACCOUNTS_PK = "SUM#ACCOUNTS"
"""The directory of accounts with sums, so that a question without an account finds them."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_TEXT = 2_000
"""Most characters of a text in rows and keys; the document has the full text."""
_LONGEST_REGION = 64
_LONGEST_PART_BYTES = 512
"""A partition key has at most 2,048 bytes, a sort key 1,024; a longer one fails the transaction."""


def as_utc(moment: datetime) -> datetime:
    """The moment in UTC; one without a zone is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def moment_text(moment: datetime) -> str:
    """ISO 8601 in UTC, always 27 characters."""
    return as_utc(moment).isoformat(timespec="microseconds").replace("+00:00", "Z")


def read_moment(text: str) -> datetime:
    """A moment from ISO 8601."""
    return as_utc(datetime.fromisoformat(text))


def epoch_s(moment: datetime) -> int:
    """Whole seconds since 1970, as TTL attributes count."""
    return (as_utc(moment) - _EPOCH) // timedelta(seconds=1)


def part(text: str) -> str:
    """The text as one part of a key: itself, or when too long its beginning and a hash."""
    encoded = text[:LONGEST_TEXT].encode("utf-8", "replace")
    if len(encoded) <= _LONGEST_PART_BYTES:
        return encoded.decode()
    kept = encoded[: _LONGEST_PART_BYTES - 65].decode("utf-8", "ignore")
    return f"{kept}~{hashlib.sha256(encoded).hexdigest()}"


def run_id(key: JobKey) -> str:
    """Identifies one run: its ARN and creation time in epoch milliseconds."""
    created_ms = (as_utc(key.created_at) - _EPOCH) // timedelta(milliseconds=1)
    return f"{part(key.arn)}#{created_ms}"


def job_pk(key: JobKey) -> str:
    """The partition with all items of one run, except its notices."""
    return f"JOB#{run_id(key)}"


def audit_sk(version: int) -> str:
    """The sort key of a version; keys sort by version up to 99,999."""
    return f"{AUDIT_PREFIX}{version:05d}"


def finding_sk(rule_id: str) -> str:
    """The sort key of a rule's finding."""
    return f"{FINDING_PREFIX}{rule_id}"


def month_of(moment: datetime) -> str:
    """YYYY-MM in UTC."""
    return moment_text(moment)[:7]


def month_of_day(day: date) -> str:
    """YYYY-MM."""
    return day.isoformat()[:7]


def ended_sk(ended_at: datetime, key: JobKey) -> str:
    """Sorts by the job's end; unique, so that a list can be continued after it."""
    return f"{moment_text(ended_at)}#{run_id(key)}"


def day_pk(ended_at: datetime, key: JobKey) -> str:
    """The shard of the day that this job belongs to."""
    return f"{moment_text(ended_at)[:10]}#{_shard(key, DAY_SHARDS)}"


def day_pks(day: date) -> tuple[str, ...]:
    """All shards of a day."""
    return tuple(f"{day.isoformat()}#{shard}" for shard in range(DAY_SHARDS))


def due_pk(key: JobKey) -> str:
    """The shard of the recheck list that this job belongs to."""
    return f"DUE#{_shard(key, DUE_SHARDS)}"


def due_pks() -> tuple[str, ...]:
    """All shards of the recheck list."""
    return tuple(f"DUE#{shard}" for shard in range(DUE_SHARDS))


def due_sk(due_at: datetime, key: JobKey) -> str:
    """Sorts by the recheck time; unique."""
    return f"{moment_text(due_at)}#{run_id(key)}"


def due_until(before: datetime) -> str:
    """Sorts after every `due_sk` with a time up to `before`, since "$" follows "#"."""
    return f"{moment_text(before)}$"


def family_pk(account: str, region: str, family: str) -> str:
    """One family of an account and region; its name is last, as it may contain "#"."""
    return f"{part(account)}#{part(region)}#{part(family)}"


def family_runs_pk(account: str, region: str, family: str) -> str:
    """The runs of one family, for strongly consistent reads; their sort key is `ended_sk`."""
    return f"RUNS#{family_pk(account, region, family)}"


def ended_before(moment: datetime) -> str:
    """Sorts after every `ended_sk` before this moment, and before all others."""
    return moment_text(moment)


def before_sk(before: datetime | Position | None) -> str:
    """Sorts after every `ended_sk` that a list shows; None: after all of them."""
    if before is None:
        return "~"
    if isinstance(before, Position):
        return ended_sk(before.ended_at, before.key)
    return ended_before(before)


def ended_after(moment: datetime) -> str:
    """Sorts after every `ended_sk` up to this moment, since "$" follows "#"."""
    return f"{moment_text(moment)}$"


def owner_pk(owner: str) -> str:
    """One owner's jobs in all accounts and months."""
    return f"OWNER#{part(owner)}"


def account_pk(account: str, month: str) -> str:
    """One account's jobs of a month (YYYY-MM)."""
    return f"{part(account)}#{month}"


def rule_pk(rule: str, month: str) -> str:
    """One rule's findings of a month (YYYY-MM)."""
    return f"{part(rule)}#{month}"


def sums_pk(account: str, month: str) -> str:
    """The daily sums of one account and month (YYYY-MM)."""
    return f"SUM#{part(account)}#{month}"


def sums_sk(row: SumRow, shard: int) -> str:
    """One shard of one day's sums; within a name and region, days sort by time."""
    return f"{_sums_of(row.scope, row.name or '', row.region)}#{row.day.isoformat()}#{shard}"


def sums_between(scope: Scope, name: str, region: str, since: date, until: date) -> tuple[str, str]:
    """The first sort key of these days of one name, and one after the last: "$" follows "#"."""
    of = _sums_of(scope, name, region)
    return f"{of}#{since.isoformat()}", f"{of}#{until.isoformat()}$"


def sums_within(scope: Scope, name: str | None) -> tuple[str, str]:
    """Before the first and after the last sort key of a scope, or of one name of it."""
    of = scope.value if name is None else f"{scope.value}#{part(name)}"
    return f"{of}#", f"{of}$"


def _sums_of(scope: Scope, name: str, region: str) -> str:
    """A region with a "#" is hashed: the name may have one, and two names must not share a key."""
    plain = "#" not in region and len(region) <= _LONGEST_REGION
    hashed = hashlib.sha256(region.encode("utf-8", "replace")).hexdigest()
    return f"{scope.value}#{part(name)}#{part(region) if plain else '~' + hashed}"


def sums_shard(key: JobKey, scope: Scope, tries: int) -> int:
    """The shard to which a run adds; any may take a difference, as readers add all of them.

    An account's rows are spread at once. The others take the first shard, so that a quiet family
    has one row a day, and another one after each of the `tries` that met a conflict.
    """
    if scope is not Scope.ACCOUNT and tries == 0:
        return 0
    return (_shard(key, SUMS_SHARDS) + tries) % SUMS_SHARDS


def sums_account_sk(month: str, account: str) -> str:
    """An account in the directory of those with sums; sorts by month."""
    return f"{month}#{part(account)}"


def sums_months(since: date, until: date) -> tuple[str, str]:
    """Before the first and after the last sort key of the directory in these months."""
    return f"{month_of_day(since)}#", f"{month_of_day(until)}$"


def family_day_pk(family: str) -> str:
    """The audits that a family's daily messages are about; one item per day."""
    return f"TOLD#{part(family)}"


def news_pk(job: str) -> str:
    """The last notice of one run of a job."""
    return f"NEWS#{part(job)}"


def notice_pk(notice_id: str) -> str:
    """The sending state of one notice."""
    return f"NOTICE#{part(notice_id)}"


def price_pk(region: str, component: str) -> str:
    """The rates of one region and component, which are read together."""
    return f"PRICE#{part(region)}#{part(component)}"


def _shard(key: JobKey, shards: int) -> int:
    """An evenly distributed shard by CRC-32: Python's `hash` differs between processes."""
    return zlib.crc32(key.arn.encode("utf-8", "replace")) % shards
