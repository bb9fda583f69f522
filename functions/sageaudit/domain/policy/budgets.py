"""The monthly budgets of the policy: `[[budget]]`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.job.ref import is_account_id
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy.routes import channel_names
from sageaudit.domain.policy.table_reader import TableReader, full_key
from sageaudit.errors import BadPolicy

MAX_BUDGETS = 50
"""The maximum number of budgets, because the watch reads each of them once an hour. Our choice."""
MAX_NAME_LENGTH = 40
"""The maximum number of characters in a budget's name, which is in the first line of messages."""
_MAX_SELECTOR_LENGTH = 512
_SELECTORS = ("family", "owner", "tag", "account")
ALL_JOBS = "all jobs"
"""The default name of a budget for the whole deployment."""


class Budget(Struct, frozen=True):
    """A `[[budget]]` of the policy: USD a month (UTC) for the jobs that it selects.

    At most one of `family`, `owner`, `tag` (name and value) and `account` is set; without one, all
    jobs count. Messages go to `channels`, or to the default channels if there are none.
    """

    name: str
    usd_per_month: Decimal
    family: str | None = None
    owner: str | None = None
    tag: tuple[str, str] | None = None
    account: str | None = None
    channels: tuple[str, ...] = ()

    @property
    def selector(self) -> tuple[str, str]:
        """The kind and the name of what the budget is for, such as `("tag", "team=vision")`.

        Both are empty for all jobs. It identifies the budget, so that a new name or amount sends no
        message twice.
        """
        kinds = {
            "family": self.family,
            "owner": self.owner,
            "tag": self.tag and "=".join(self.tag),
            "account": self.account,
        }
        return next(((kind, text) for kind, text in kinds.items() if text is not None), ("", ""))


def parse_budgets(
    reader: TableReader, channels: Mapping[str, object], cost_tags: Collection[str]
) -> tuple[Budget, ...]:
    """Reads `[[budget]]`. Raises BadPolicy.

    `cost_tags`: the tags in `tags.show`. Only these have daily sums.
    """
    budgets: dict[tuple[str, str], Budget] = {}
    names = set[str]()
    for row in reader.table_array("budget"):
        budget = _budget(row, channels, cost_tags)
        if budget.selector in budgets:
            first_name = budgets[budget.selector].name
            text = f"{full_key(row.path)} is for the same jobs as the budget {first_name!r}"
            raise BadPolicy(f"{text}: give them one budget", row.path)
        if budget.name in names:
            text = f"is that of an earlier budget, {budget.name!r}: set another name"
            raise row.error("name", text)
        budgets[budget.selector] = budget
        names.add(budget.name)
    if len(budgets) > MAX_BUDGETS:
        raise BadPolicy(f"budget has {len(budgets)} tables: {MAX_BUDGETS} at most")
    return tuple(budgets.values())


def _budget(
    reader: TableReader, channels: Mapping[str, object], cost_tags: Collection[str]
) -> Budget:
    texts = {key: _text(reader, key) for key in _SELECTORS}
    name = _text(reader, "name")
    usd = reader.amount("usd_per_month")
    names = channel_names(reader, "to", channels)
    reader.reject_unread_keys()
    used_keys = [key for key, value in texts.items() if value is not None]
    if len(used_keys) > 1:
        raise reader.error(
            used_keys[1], f"and {used_keys[0]} are both set: a budget selects jobs by one of them"
        )
    if usd < Decimal("0.01"):
        raise reader.error("usd_per_month", "is less than one cent")
    tag, account = texts["tag"], texts["account"]
    if account is not None and not is_account_id(account):
        raise reader.error("account", "is not an account id of 12 digits")
    budget = Budget(
        name or _default_name(texts),
        usd,
        family=texts["family"],
        owner=texts["owner"],
        tag=None if tag is None else _tag(reader, tag, cost_tags),
        account=account,
        channels=names,
    )
    if name is not None and len(name) > MAX_NAME_LENGTH:
        raise reader.error("name", f"is longer than {MAX_NAME_LENGTH} characters")
    return budget


def _text(reader: TableReader, key: str) -> str | None:
    value: str | None = reader.read(key, str, None)
    if value is None:
        return None
    value = value.strip()
    if not value:
        raise reader.error(key, "is empty")
    if len(value) > _MAX_SELECTOR_LENGTH:
        raise reader.error(key, f"is longer than {_MAX_SELECTOR_LENGTH} characters")
    return value


def _tag(reader: TableReader, text: str, cost_tags: Collection[str]) -> tuple[str, str]:
    name, _, value = (part.strip() for part in text.partition("="))
    if not (name and value):
        raise reader.error("tag", 'is not written "key=value"')
    if name not in cost_tags:
        near = did_you_mean(name, sorted(cost_tags))
        raise reader.error(
            "tag", f"names {name!r}, which tags.show lacks: only those tags have daily sums{near}"
        )
    return name, value


def _default_name(texts: Mapping[str, str | None]) -> str:
    text = next((value for value in texts.values() if value is not None), ALL_JOBS)
    return (text.rpartition("/")[2] or text) if texts["family"] else text
