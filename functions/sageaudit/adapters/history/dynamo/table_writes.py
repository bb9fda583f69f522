"""What a role may write to the table: the partition keys of the items, by IAM action.

IAM has no action for TransactWriteItems, only for its parts ("Using IAM with DynamoDB transactions"
in the developer guide). `dynamodb:LeadingKeys` is a condition key of all of them, including
ConditionCheckItem ("Actions, resources, and condition keys for Amazon DynamoDB").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

TableWrites = Mapping[str, tuple[str, ...]]
"""The partition keys that each IAM action may have: whole keys, and prefixes, which end in `#`."""


def write_grants(writes: Iterable[TableWrites]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Yields the actions of all these writes, grouped by partition keys, and their conditions."""
    keys_by_action: dict[str, set[str]] = {}
    for table_writes in writes:
        for action, keys in table_writes.items():
            keys_by_action.setdefault(action, set()).update(keys)
    actions_by_keys: dict[tuple[str, ...], list[str]] = {}
    for action, action_keys in sorted(keys_by_action.items()):
        actions_by_keys.setdefault(tuple(sorted(action_keys)), []).append(action)
    for partition_keys, actions in actions_by_keys.items():
        yield actions, partition_key_condition(partition_keys)


def partition_key_condition(partition_keys: Iterable[str]) -> dict[str, Any]:
    """Returns the IAM condition that allows only items with these partition keys or prefixes."""
    patterns = [f"{key}*" if key.endswith("#") else key for key in partition_keys]
    # ForAllValues is also true for a request without the key: "Single-valued vs. multivalued
    # context keys" in the IAM User Guide says to add Null. A scan, for example, has no key.
    return {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": patterns},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
