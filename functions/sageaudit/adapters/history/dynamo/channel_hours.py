"""The item that counts a channel's messages of a clock hour."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal

from sageaudit.adapters.history.codec import Item, epoch_s
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.calls import Dynamo
from sageaudit.adapters.history.dynamo.keys import (
    KEPT_DAYS,
    PARTITION_KEY,
    SORT_KEY,
    TTL_ATTRIBUTE,
)
from sageaudit.domain.alert.alert import ChannelHour
from sageaudit.errors import UNREADABLE, Malformed


def read(table: Dynamo, channel: str, began_at: datetime) -> ChannelHour:
    """The hour as it is stored. Raises Malformed for an item that cannot be read, or AwsError."""
    stored = table.get(keys.channel_pk(channel), keys.hour_sk(began_at))
    if stored is None:
        return ChannelHour(channel, began_at)
    with named(stored):
        dearest = tuple(
            (str(one["headline"]), Decimal(one["usd"]) if "usd" in one else None)
            for one in stored["dearest"]
        )
        sent, held = int(stored["sent"]), int(stored["held"])
    return ChannelHour(channel, began_at, sent, held, dearest)


def item(hour: ChannelHour, now: datetime) -> Item:
    """The item to store."""
    return {
        PARTITION_KEY: keys.channel_pk(hour.channel),
        SORT_KEY: keys.hour_sk(hour.began_at),
        TTL_ATTRIBUTE: epoch_s(now + timedelta(days=KEPT_DAYS)),
        "revision": hour.count,
        "sent": hour.sent,
        "held": hour.held,
        "dearest": [
            {"headline": headline, **({} if usd is None else {"usd": usd})}
            for headline, usd in hour.dearest
        ],
    }


@contextmanager
def named(item: Item) -> Iterator[None]:
    """Raises Malformed, with its keys, for an item that cannot be read."""
    try:
        yield
    except (zlib.error, *UNREADABLE) as error:
        where = f"{item.get(PARTITION_KEY)!r} {item.get(SORT_KEY)!r}"
        reason = f"cannot be read ({type(error).__name__}: {error}); delete it"
        raise Malformed(f"the item {where}", reason) from error
