"""Stores alerts, digests and the states of running jobs in the history's table.

One transaction writes each of these together with its notices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from sageaudit.adapters.files.exact_json import gzip_text, read_gzip_text
from sageaudit.adapters.history.codec import Item, epoch_s, make_row, moment_text, read_decimal
from sageaudit.adapters.history.dynamo import keys, send_ledger
from sageaudit.adapters.history.dynamo.calls import (
    ConditionFailed,
    DynamoTable,
    check_action,
    put_action,
)
from sageaudit.adapters.history.dynamo.items import item_key
from sageaudit.adapters.history.dynamo.keys import (
    PARTITION_KEY,
    SORT_KEY,
    TTL_ATTRIBUTE,
)
from sageaudit.adapters.history.dynamo.table_writes import TableWrites
from sageaudit.adapters.history.stored_items import StoredItems
from sageaudit.domain.alert.alert import (
    ALERT_RETENTION_DAYS,
    Alert,
    AlertKind,
    ChannelHour,
    PastAlerts,
)
from sageaudit.domain.alert.audit_figures import AlertFigures
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.moments import parse_moment
from sageaudit.domain.running import RunningKind, WatchState
from sageaudit.errors import UnreadableItem
from sageaudit.structs import replace

READ_PERMISSIONS = ("dynamodb:GetItem",)
ALERT_WRITES: TableWrites = {
    "dynamodb:ConditionCheckItem": (keys.JOB_PREFIX, keys.RUN_ALERTS_PREFIX),
    "dynamodb:PutItem": (keys.RUN_ALERTS_PREFIX, keys.FAMILY_ALERTS_PREFIX, keys.CHANNEL_PREFIX),
}
"""What `write_alert` writes and checks."""
DIGEST_WRITES: TableWrites = {"dynamodb:PutItem": (keys.DIGEST_PREFIX,)}
"""What `write_digest` writes."""
WATCH_WRITES: TableWrites = {"dynamodb:PutItem": (keys.WATCH_PREFIX,)}
"""What `write_watch_state` writes."""
PERMISSIONS = (*READ_PERMISSIONS, *ALERT_WRITES)
_LAST_SK = "LAST"
_ALERTS_SK = "ALERTS"
_WEEK_SK = "WEEK"
_STATE_SK = "STATE"
_LINE_SK = "LINE"
_OPTIONAL_AMOUNTS = ("avoidable_usd", "lost_usd")
_IS_ABSENT = f"attribute_not_exists({PARTITION_KEY})"


class DynamoAlertLedger:
    """Implements AlertLedger, DigestLedger and WatchLedger.

    `client` is boto3's low-level DynamoDB client.
    """

    def __init__(self, client: Any, table_name: str) -> None:
        self._table = DynamoTable(client, table_name)
        self._items = StoredItems(item_key)

    def past_alerts(self, key: JobKey, subject: str) -> PastAlerts:
        """Reads the past alerts of a run and of its subject.

        Raises UnreadableItem, or AwsError.
        """
        run_pk = keys.job_pk(key)
        run_item = self._table.get(keys.run_alerts_pk(run_pk), _LAST_SK)
        past_alerts = replace(self._alerts_of_subject(subject), run=run_pk)
        if run_item is not None:
            last_run_alert = self._items.read(_read_alert, run_item)
            past_alerts = replace(past_alerts, last_run_alert=last_run_alert)
        return past_alerts

    def _alerts_of_subject(self, subject: str) -> PastAlerts:
        item = self._table.get(keys.family_alerts_pk(subject), _ALERTS_SK)
        if item is None:
            return PastAlerts("", subject)
        return self._items.read(partial(_read_subject, subject), item)

    def alerts(self, subject: str) -> Sequence[Alert]:
        """Returns the alerts of a subject; none if they cannot be read. Raises AwsError."""
        item = self._table.get(keys.family_alerts_pk(subject), _ALERTS_SK)
        subjects = self._items.read_each(partial(_read_subject, subject), [item] if item else [])
        return next((past_alerts.subject_alerts for past_alerts in subjects), ())

    def unreadable_items(self) -> tuple[UnreadableItem, ...]:
        """Returns the alerts that `alerts` has left out."""
        return self._items.left_out

    def has_digest(self, last_day: date) -> bool:
        """Returns True if the week's digest was already written. Raises AwsError."""
        return self._table.get(keys.digest_pk(last_day), _WEEK_SK) is not None

    def write_digest(
        self, last_day: date, bodies: Mapping[tuple[int, str], str], now: datetime
    ) -> bool:
        """Writes the digest and its notices in one transaction.

        Returns False, and writes nothing, if the digest exists. Raises AwsError.
        """
        pk = keys.digest_pk(last_day)
        week_item = {PARTITION_KEY: pk, SORT_KEY: _WEEK_SK, TTL_ATTRIBUTE: keys.kept_until(now)}
        actions = [put_action(week_item, _IS_ABSENT, {}), *notice_actions(pk, bodies, now)]
        return self._try_transaction(actions)

    def watch_state(self, key: JobKey) -> WatchState:
        """Reads a running job's state, which is empty if none is stored.

        Raises UnreadableItem, or AwsError.
        """
        item = self._table.get(keys.watch_pk(key), _STATE_SK)
        if item is None:
            return WatchState(key)
        return self._items.read(partial(_read_watch_state, key), item)

    def write_watch_state(
        self, state: WatchState, bodies: Mapping[str, str], now: datetime
    ) -> bool:
        """Writes the state and its notices in one transaction.

        Returns False, and writes nothing, if the stored state has changed since it was read.
        """
        pk = keys.watch_pk(state.key)
        item = {PARTITION_KEY: pk, SORT_KEY: _STATE_SK, **_watch_item(state, now)}
        body_by_key = {(state.messages, channel): body for channel, body in bodies.items()}
        condition = unchanged_condition("revision", state.revision - 1)
        return self._try_transaction(
            [put_action(item, *condition), *notice_actions(pk, body_by_key, now)]
        )

    def _try_transaction(self, actions: Sequence[Item]) -> bool:
        try:
            self._table.transact([*actions])
        except ConditionFailed:
            return False
        return True

    def channel_hour(self, channel: str, began_at: datetime) -> ChannelHour:
        """Reads how many messages went to a channel in a clock hour.

        Raises UnreadableItem, or AwsError.
        """
        return send_ledger.read_channel_hour(self._table, channel, began_at)

    def has_job_line(self, key: JobKey) -> bool:
        """Returns True if the one-line message about a run was already written. Raises AwsError."""
        return self._table.get(keys.run_alerts_pk(keys.job_pk(key)), _LINE_SK) is not None

    def write_alert(
        self,
        previous_alerts: PastAlerts,
        new_alerts: PastAlerts,
        bodies: Mapping[str, str],
        now: datetime,
        hours: Sequence[ChannelHour] = (),
        *,
        includes_job_line: bool = False,
    ) -> bool:
        """Writes alerts, notices and the message counts of `hours` in one transaction.

        Returns False, and writes nothing, if the stored items have changed since they were read. A
        run's last alert never expires, since new rules may judge a job again at any time.
        """
        actions = [
            put_action(
                send_ledger.channel_hour_item(hour, now),
                *unchanged_condition("revision", hour.count - 1),
            )
            for hour in hours
        ]
        if new_alerts is not previous_alerts:
            actions.append(_subject_action(previous_alerts, new_alerts, now))
        actions += _run_actions(previous_alerts, new_alerts)
        if includes_job_line:
            actions.append(_line_action(new_alerts.run, now))
        # All notices of a run are in one partition, so that the stream keeps their order.
        last_alert = new_alerts.last_run_alert
        version = (
            last_alert.version
            if last_alert and last_alert is not previous_alerts.last_run_alert
            else 1
        )
        body_by_key = {(version, channel): body for channel, body in bodies.items()}
        return self._try_transaction(
            [*actions, *notice_actions(keys.run_alerts_pk(new_alerts.run), body_by_key, now)]
        )

    def notice(self, pk: str, sk: str) -> tuple[str, str] | None:
        """Returns a notice's channel and body by its keys; None if there is no such notice.

        Raises UnreadableItem, or AwsError.
        """
        item = self._table.get(pk, sk)
        if item is None:
            return None
        return self._items.read(_read_notice, item)


def _read_notice(item: Item) -> tuple[str, str]:
    return str(item["channel"]), read_gzip_text(item["body"])


def _subject_action(previous_alerts: PastAlerts, new_alerts: PastAlerts, now: datetime) -> Item:
    item = {
        PARTITION_KEY: keys.family_alerts_pk(new_alerts.group),
        SORT_KEY: _ALERTS_SK,
        TTL_ATTRIBUTE: epoch_s(now + timedelta(days=ALERT_RETENTION_DAYS)),
        "revision": new_alerts.revision,
        "alerts": list(map(_alert_item, new_alerts.subject_alerts)),
        "steps": list(new_alerts.steps),
    }
    return put_action(item, *unchanged_condition("revision", previous_alerts.revision))


def _run_actions(previous_alerts: PastAlerts, new_alerts: PastAlerts) -> Iterator[Item]:
    # The Put requires that the run has no newer version. Without a new alert, this yields only a
    # check that the last alert has not changed.
    pk, alert = keys.run_alerts_pk(new_alerts.run), new_alerts.last_run_alert
    is_unchanged = unchanged_condition(
        "version", previous_alerts.last_run_alert.version if previous_alerts.last_run_alert else 0
    )
    if alert is None or alert is previous_alerts.last_run_alert:
        yield check_action(pk, _LAST_SK, *is_unchanged)
        return
    yield put_action({PARTITION_KEY: pk, SORT_KEY: _LAST_SK, **_alert_item(alert)}, *is_unchanged)
    # Versions are never deleted, so checking that the next one is absent is cheapest.
    yield check_action(new_alerts.run, keys.audit_sk(alert.version + 1), _IS_ABSENT, {})


def _line_action(run: str, now: datetime) -> Item:
    """Returns a Put that records that the run's one-line message was written.

    It expires only after no newer version of the run's audit can arrive.
    """
    key = {PARTITION_KEY: keys.run_alerts_pk(run), SORT_KEY: _LINE_SK}
    return put_action(key | {TTL_ATTRIBUTE: keys.kept_until(now)}, _IS_ABSENT, {})


def unchanged_condition(name: str, read_value: int) -> tuple[str, Item]:
    """Returns the condition that the item's number `name` is still `read_value`.

    If `read_value` is 0, the item must be absent.
    """
    return (f"{name} = :seen", {":seen": read_value}) if read_value else (_IS_ABSENT, {})


def notice_actions(pk: str, bodies: Mapping[tuple[int, str], str], now: datetime) -> Iterator[Item]:
    """Yields the Puts of notices, from their bodies by number and channel."""
    for (version, channel), body in bodies.items():
        key = {PARTITION_KEY: pk, SORT_KEY: keys.notice_sk(version, channel)}
        notice = {TTL_ATTRIBUTE: keys.kept_until(now), "channel": channel, "body": gzip_text(body)}
        yield put_action(key | notice)


def _watch_item(state: WatchState, now: datetime) -> Item:
    # Unknown values have no attribute.
    idle_times = {"idle_since": state.idle_since, "idle_until": state.idle_until}
    return {
        TTL_ATTRIBUTE: keys.kept_until(now),
        "revision": state.revision,
        "gpus": state.gpus,
        "idle_message_count": state.idle_message_count,
        "sent": sorted(state.sent),
        "channels": list(state.channels),
        "messages": state.messages,
        **({} if state.usd_per_hour is None else {"usd_per_hour": state.usd_per_hour}),
        **{name: moment_text(moment) for name, moment in idle_times.items() if moment},
    }


def _read_watch_state(key: JobKey, item: Item) -> WatchState:
    since, until = (
        parse_moment(item[name]) if name in item else None for name in ("idle_since", "idle_until")
    )
    values = {
        "key": key,
        "revision": int(item["revision"]),
        "usd_per_hour": read_decimal(item["usd_per_hour"]) if "usd_per_hour" in item else None,
        "gpus": int(item["gpus"]),
        "idle_since": since,
        "idle_until": until,
        "idle_message_count": int(item["idle_message_count"]),
        "sent": frozenset(map(RunningKind, item["sent"])),
        "channels": tuple(item["channels"]),
        "messages": int(item["messages"]),
    }
    return make_row(WatchState, values)


def _alert_item(alert: Alert) -> Item:
    # Unknown values have no attribute.
    figures = alert.figures
    attributes = {"amount_kind": alert.amount_kind and alert.amount_kind.value}
    attributes |= {name: getattr(figures, name) for name in _OPTIONAL_AMOUNTS}
    return {
        "run": alert.run,
        "family": alert.family,
        "kind": alert.kind.value,
        "version": alert.version,
        "at": moment_text(alert.at),
        "channels": list(alert.channels),
        "recommendation_ids": list(alert.recommendation_ids),
        "amount": alert.amount,
        "is_single_occurrence": alert.is_single_occurrence,
        "severity": figures.severity.value,
        "possible_loss_usd": figures.possible_loss_usd,
        "accepted_usd": figures.accepted_usd,
        **{name: value for name, value in attributes.items() if value is not None},
    }


def _read_subject(subject: str, item: Item) -> PastAlerts:
    alerts = tuple(map(_read_alert, item["alerts"]))
    steps, revision = tuple(item["steps"]), int(item["revision"])
    values = {"run": "", "group": subject, "subject_alerts": alerts, "steps": steps}
    return make_row(PastAlerts, {**values, "revision": revision})


def _read_alert(item: Item) -> Alert:
    amounts = {name: read_decimal(item[name]) for name in _OPTIONAL_AMOUNTS if name in item}
    figures = AlertFigures(
        Severity(item["severity"]),
        amounts.get("avoidable_usd"),
        amounts.get("lost_usd"),
        read_decimal(item["possible_loss_usd"]),
        read_decimal(item["accepted_usd"]),
    )
    values = {
        "run": item["run"],
        "family": item["family"],
        "kind": AlertKind(item["kind"]),
        "version": int(item["version"]),
        "figures": figures,
        "at": parse_moment(item["at"]),
        "channels": tuple(item["channels"]),
        "amount_kind": AmountKind(item["amount_kind"]) if "amount_kind" in item else None,
        "recommendation_ids": tuple(item["recommendation_ids"]),
        "amount": read_decimal(item["amount"]),
        "is_single_occurrence": item["is_single_occurrence"],
    }
    return make_row(Alert, values)
