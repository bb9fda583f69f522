"""The table's keys and indexes, shared by the stack, the adapters and the tests.

A retained table's keys cannot change and one update can add only one index, so all planned indexes
are here from the start. Each access pattern is in docs/data-model.md.
"""

from __future__ import annotations

from msgspec import Struct

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


class Index(Struct, frozen=True):
    """A global secondary index: both keys are strings, and it has all attributes of its items.

    Named attributes (INCLUDE) are at most 20 an index and 100 a table, and a head has some 45.
    """

    name: str
    partition_key: str
    sort_key: str = "ended_sk"


INDEXES = (
    Index("by-day", "day_pk"),
    Index("by-family", "family_pk"),
    Index("by-rule", "rule_pk"),
    Index("by-owner", "owner_pk"),
    Index("by-name", "name_pk"),
    Index("by-account", "account_pk"),
    Index("due", "due_pk", "due_sk"),
)
