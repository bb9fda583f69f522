"""The table's keys and indexes, shared by the stack, the adapters and the tests.

A retained table's keys cannot change and one update can add only one index, so all planned indexes
are here from the start. Each access pattern is in docs/data-model.md.
"""

from __future__ import annotations

from dataclasses import dataclass

PARTITION_KEY = "pk"
SORT_KEY = "sk"
TTL_ATTRIBUTE = "expires_at"
KEPT_DAYS = 45
"""How long alerts of a day, notices and what became of them are kept: longer than any redelivery,
since a stream keeps records for a day and SQS messages for at most 14 days."""
AUDIT_PREFIX = "AUDIT#"
NOTICE_PREFIX = "NOTICE#"
"""Sort-key prefixes of immutable version items and of notices to be put on a queue; `notify`
receives only INSERTs of these."""

DIGEST_PREFIX = "DIGEST#"
"""Begins the partition keys of digests, the only items that `digest` writes."""
WATCH_PREFIX, PRICE_PREFIX = "WATCH#", "PRICE#"
"""The same of what is kept of running jobs, and of prices."""
DELIVERY_PREFIX, CHANNEL_PREFIX = "DELIVERY#", "CHANNEL#"
"""The same of what `deliver` writes."""


ROW = "row"
"""The attribute with the packed fields."""
PLAIN_OF_HEAD = (
    *("version", "last_modified_at", "due_at"),
    *("kind", "status", "rollup", "severity", "top_rule", "total_usd", "avoidable_usd", "lost_usd"),
)
"""Fields that are attributes: for the conditions of writes, and for people who ask the table."""
PLAIN_OF_FINDING = ("severity", "saving_usd")


@dataclass(frozen=True, slots=True)
class Index:
    """A global secondary index: both keys are strings.

    It projects the fields of its rows, and not the keys of the other indexes: most heads are
    below 1 KB by that, one write unit each.
    """

    name: str
    partition_key: str
    sort_key: str = "ended_sk"
    fields: tuple[str, ...] = (*PLAIN_OF_HEAD, ROW)


INDEXES = (
    Index("by-day", "day_pk"),
    Index("by-family", "family_pk"),
    Index("by-rule", "rule_pk", fields=(*PLAIN_OF_FINDING, ROW)),
    Index("by-owner", "owner_pk"),
    Index("by-name", "name_pk"),
    Index("by-account", "account_pk"),
    Index("due", "due_pk", "due_sk"),
)
