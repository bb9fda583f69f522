"""Samples of all stored data by release: what a version wrote, and what it read back.

`python -m tests.stored.samples` writes those of the version in pyproject.toml: a day on the local
AWS, and an embedded history. A released version's samples never change.
"""

import json
import re
import sys
import tomllib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from local import REGION
from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.dynamo.budget_ledger import DynamoBudgetLedger
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.member_registry import DynamoMemberRegistry
from sageaudit.adapters.history.dynamo.send_ledger import DynamoSendLedger
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.prices.price_list import PriceCache, StoredListing
from sageaudit.domain.advice.advice import Decision, DecisionAction
from sageaudit.domain.alert.alert import alert_subject_key
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.budget import SentBudgetMessages, Threshold
from sageaudit.domain.job.kinds import Component, JobKind
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import Denial, WaitingEvent
from sageaudit.domain.policy.routes import Routes
from sageaudit.domain.prices.price_list import Entry, InvalidPrice, ListedRate, PriceListing
from sageaudit.domain.sweep import list_states
from sageaudit.output.text.card import Notice, to_json
from sageaudit.ports import Circuit, History
from sageaudit.structs import replace
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.entries import entry, with_detail
from tests.integration.test_running import BUSY, HOUR, HUNG, MINUTE, NOON, running
from tests.integration.whole_flow import scene
from tools.release import UNRELEASED

HERE = Path(__file__).parent
TABLE, FILE, ANSWERS = "table.json", "history.db", "answers.json"
Item = Mapping[str, Mapping[str, Any]]
"""An item in DynamoDB's JSON: the value of each attribute by its type."""
_DAY = NOON.date()
_WORD = re.compile("[A-Z]+")
_HANGS = running("llm-7b", (60, BUSY), (120, HUNG))
_BUDGET_NOTICE = Notice("budget 2026-05|1|sns", "sns", {"Subject": "a", "Message": "b"})
_BUDGET = SentBudgetMessages(
    "2026-05", ("tag", "team=vision"), {Threshold.NEAR: Decimal("812.40")}, messages=1
)
_RATES: dict[str, Entry] = {
    "ml.m5.xlarge": ListedRate(Decimal("0.23"), date(2026, 5, 1), "USE1-Train:ml.m5.xlarge"),
    "ml.g5.xlarge": InvalidPrice("it is priced in CNY, not in USD"),
}
_MEMBER = AccountRegion("222233334444", REGION)
_DECISION = Decision(
    "abcdefgh", DecisionAction.SNOOZE, "mara", NOON, date(2026, 6, 20), "until the move"
)


def played() -> list[Item]:
    """Returns the table after a job that hung and failed, a digest, and a decision.

    The circuit of a channel and a price list are written directly by their adapters.
    """
    failed = {**_HANGS.describe, "TrainingJobStatus": "Failed", "SecondaryStatus": "Failed"}
    job = replace(_HANGS, describe=failed)
    with scene(NOON - MINUTE, sweeps=True, routes=Routes(("sns", "slack"))) as played_scene:
        played_scene.aws.sagemaker.add_running(job)
        played_scene.aws.put_metrics(job)
        played_scene.aws.advance(NOON + 6 * HOUR)
        played_scene.aws.clock.advance(7 * 86_400)
        played_scene.aws.digest()
        played_scene.aws.advance()
        place = (
            played_scene.aws.session.client("dynamodb"),
            played_scene.aws.physical_id("HistoryTable"),
        )
        DynamoSendLedger(*place).replace_circuit("slack", Circuit(), Circuit(3, 1779300000), NOON)
        DynamoHistory(*place).save_decision(_DECISION)
        DynamoBudgetLedger(*place).write_budget_message(
            _BUDGET, {"sns": to_json(_BUDGET_NOTICE)}, NOON
        )
        registry = DynamoMemberRegistry(*place)
        registry.record_seen(_MEMBER, NOON, 1)
        registry.add_denial(_MEMBER, Denial(NOON, NOON, ("sts:AssumeRole",), "no such role"))
        event = WaitingEvent(_MEMBER, JobKind.TRAINING, "{}", NOON)
        registry.add_waiting_event(_HANGS.key, event)
        PriceCache(*place).write(
            StoredListing(PriceListing(REGION, Component.TRAINING, _RATES), NOON)
        )
        return _items(*place)


def _items(client: Any, name: str) -> list[Item]:
    items: list[Item] = client.scan(TableName=name)["Items"]
    return sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["S"]))


def kind_of(partition: str, sort: str) -> str:
    """Returns the capital words that begin the two keys of an item."""
    return " ".join(match[0] for key in (partition, sort) if (match := _WORD.match(key)))


def write_file(path: Path) -> None:
    """Writes an embedded history of two runs and one decision."""
    with SqliteHistory(path) as history:
        for number in (1, 2):
            history.record(with_detail(entry(f"train-{number}", job={"tags": {"team": "vision"}})))
        history.save_decision(_DECISION)


def asked_table(items: Iterable[Item]) -> dict[str, Any]:
    """Returns what today's readers read from a table with these items, by question."""
    with dynamodb() as client:
        place = client, new_table(client)
        for item in items:
            client.put_item(TableName=place[1], Item=item)
        ledger, sends = DynamoAlertLedger(*place), DynamoSendLedger(*place)
        notes = DynamoSweepStore(*place)
        history = DynamoHistory(*place)
        key = _HANGS.key
        [head] = history.runs(RunQuery.for_name(_HANGS.name))
        places = [(item["pk"]["S"], item["sk"]["S"]) for item in items]
        answers: dict[str, Any] = _plain(
            {
                **_asked(history, [key]),
                "alerts": ledger.past_alerts(
                    key, alert_subject_key(head.account, head.region, head.family)
                ),
                "digest": [ledger.has_digest(_DAY + timedelta(days)) for days in range(14)],
                "watched": ledger.watch_state(key),
                "notices": [ledger.notice(pk, sk) for pk, sk in places if sk.startswith("NOTICE")],
                "deliveries": [
                    sends.claim_send(pk.removeprefix("DELIVERY#"), NOON, 60)
                    for pk, sk in places
                    if sk == "DELIVERY"
                ],
                "hour": [ledger.channel_hour("slack", NOON + hours * HOUR) for hours in range(6)],
                "budget": DynamoBudgetLedger(*place).budget_messages(
                    _BUDGET.month, _BUDGET.selector
                ),
                "circuit": sends.circuit("slack"),
                "lists": {
                    str(job_list): state
                    for job_list, state in list_states(notes.swept_regions()).items()
                },
                "sent": notes.event_record(key),
                "members": list(DynamoMemberRegistry(*place).members().values()),
                "waiting": list(DynamoMemberRegistry(*place).waiting_events(_MEMBER)),
                "installed": DynamoSweepStore(*place).installed_at(),
                "decisions": DynamoHistory(*place).decisions(),
                "prices": PriceCache(*place).read(REGION, Component.TRAINING),
            }
        )
        return answers


def asked_file(path: Path) -> dict[str, Any]:
    """Returns what today's readers read from an embedded history."""
    with SqliteHistory(path) as history:
        keys = [head.key for head in history.runs(RunQuery.for_account("111122223333"))]
        answers: dict[str, Any] = _plain(
            {**_asked(history, keys), "decisions": history.decisions()}
        )
        return answers


def _asked(history: History, keys: Iterable[JobKey]) -> dict[str, Any]:
    since, until = date(2026, 1, 1), date(2026, 12, 31)
    answers = {}
    for key in keys:
        head = history.summary(key)
        assert head is not None
        family = RunQuery.for_family(head.account, head.region, head.family)
        finding_rows = [
            row
            for rule in head.rules_with_findings
            for row in history.runs(RunQuery.for_rule(rule))
        ]
        answers[head.job] = {
            "head": head,
            "audit": history.audit(key),
            "detail": history.detail(key),
            "findings": finding_rows,
            "family": [run.job for run in history.runs(family)],
        }
    sums = {scope.value: [*history.daily_sums(scope, since, until)] for scope in Scope}
    return {"runs": answers, "sums": sums}


def _plain(value: object) -> Any:
    """Converts to JSON values: structs to maps, other values to text."""
    if isinstance(value, Struct):
        return {name: _plain(part) for name, part in asdict(value).items()}
    match value:
        case Mapping():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case str() | None | bool():
            return value
        case Enum():
            return value.name
        case AbstractSet():
            return sorted(map(_plain, value))
        case Sequence():
            return [_plain(inner) for inner in value]
    return str(value)


def releases() -> list[Path]:
    """Returns the folders of samples, oldest version first."""
    folders = (path.parent for path in HERE.glob(f"*/{ANSWERS}"))
    return sorted(folders, key=lambda path: [int(part) for part in path.name.split(".")])


def read_table(folder: Path) -> list[Item]:
    """Returns the items of a sample."""
    items: list[Item] = json.loads((folder / TABLE).read_text(encoding="utf-8"), object_hook=_bytes)
    return items


def _bytes(value: dict[str, Any]) -> dict[str, Any]:
    return {"B": b64decode(value["B"])} if value.keys() == {"B"} else value


def main() -> None:
    """Writes the samples of the version in pyproject.toml, which is not released yet."""
    root = HERE.parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    version = project["project"]["version"]
    if f"## {version} - {UNRELEASED}" not in (root / "CHANGELOG.md").read_text(encoding="utf-8"):
        sys.exit(f"{version} is released: its samples stay as they are")
    folder = HERE / version
    folder.mkdir(exist_ok=True)
    items = played()
    (folder / FILE).unlink(missing_ok=True)
    write_file(folder / FILE)
    answers = {"table": asked_table(items), "file": asked_file(folder / FILE)}
    for name, sample in ((TABLE, items), (ANSWERS, answers)):
        text = json.dumps(sample, indent=1, sort_keys=True, default=_in_base64)
        (folder / name).write_text(text + "\n", encoding="utf-8")


def _in_base64(binary: bytes) -> str:
    return b64encode(binary).decode()


if __name__ == "__main__":
    main()
