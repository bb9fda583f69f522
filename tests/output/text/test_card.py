import html
import re
import textwrap
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from sageaudit.domain.advice.comparison import Dearer
from sageaudit.domain.advice.month import Month
from sageaudit.domain.alert.alert import AlertKind
from sageaudit.domain.alert.rule import AlertDecision
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.earlier import Worth
from sageaudit.output.text import plain, slack
from sageaudit.output.text.alert_card import card_of
from sageaudit.output.text.card import ROWS, WIDTH
from tests.fakes.documents import (
    advised,
    dearer_document,
    document,
    estimated_document,
    finding,
    fix,
    idle_document,
    job,
    lost_document,
    perhaps_lost_document,
    rollup_document,
    trial_document,
    type_finding,
    unpriced_idle_document,
)
from tests.fakes.hostile import documents, whole_documents
from tests.golden.regenerate import messages

DEAR = AlertDecision(AlertKind.DEARER, worth=None, dearer=Dearer(Decimal(24), Decimal(182)))
LINK = re.compile(r"<[^<>|]*\|([^<>]*)>")


def due(worth: Worth = Worth.COUNTED, said: str = "541.7", **more: Any) -> AlertDecision:
    """A message about 12 runs of a month."""
    runs = more.pop("runs", 12)
    month = Month(worth, Decimal(more.pop("total", said)), Decimal(said), runs, occasions=runs)
    idle = worth in {Worth.IDLE, Worth.PREPAID, Worth.UNPRICED}
    return AlertDecision(worth=worth, idle=idle, month=month, saves=month, **more)


def rows_of(audit: AuditDocument, notify: AlertDecision) -> list[str]:
    """What a phone shows of the Slack message."""
    blocks = slack.message(card_of(audit, notify))["blocks"]
    lines = "\n".join(block["text"]["text"] for block in blocks).split("\n")
    shown = [html.unescape(LINK.sub(r"\1", line)) for line in lines]
    plain_lines = [line.replace("*", "").replace("`", "") for line in shown]
    return [row for line in plain_lines for row in textwrap.wrap(line, WIDTH) or [""]]


@pytest.mark.parametrize("name", [*messages()])
def test_a_card_is_read_on_a_phone_without_scrolling(name: str) -> None:
    """At most 14 rows, and as many lines in a mail."""
    audit, notify = messages()[name]
    assert len(rows_of(audit, notify)) <= ROWS
    assert len(plain.message(card_of(audit, notify))["message"].strip().split("\n")) <= ROWS


@whole_documents
@given(documents())
def test_any_card_keeps_its_rows(audit: AuditDocument) -> None:
    """Also with texts that attack, and where a row more is that of a word of 1,000 letters."""
    notify = replace(due(), advice=advised())
    assert len(plain.message(card_of(audit, notify))["message"].strip().split("\n")) <= ROWS
    card = card_of(audit, notify)
    assert card.more[-1].text == "sageaudit advice snooze abcdefgh"


@pytest.mark.parametrize(
    ("audit", "notify", "title"),
    [
        (document(), due(), "about $540 a month, 12 runs: use 1 x ml.g4dn.xlarge"),
        (document(), due(said="9.46", runs=1), "about $9.50 a month, 1 run: use"),
        (document(), due(said="1249"), "about $1,200 a month, 12 runs: use"),
        (document(), due(said="0"), "dollars not known, 12 runs: use"),
        (document(), due(total="61"), "heading for $540 a month, after 12 runs: use"),
        (document(), due(total="61", runs=1), "about $61, 1 run: use"),
        (document(), due(kind=AlertKind.BACK), "back, about $540 a month, 12 runs: use"),
        (lost_document(), due(), "about $540 a month lost, 12 runs: look at it"),
        (perhaps_lost_document(), due(), "maybe $540 a month lost, 12 runs: set"),
        (trial_document(), due(Worth.TRIAL),
         "maybe $540 a month, 12 runs: try EnableManagedSpotTraining = true"),
        (rollup_document(), due(total="61", runs=500),
         "about $3.80 in a tuning job: use ml.g4dn.xlarge"),
        (idle_document(), due(Worth.IDLE),
         "about $540 a month of idle capacity, 12 runs: look at the communication between hosts"),
        (unpriced_idle_document(), due(Worth.UNPRICED), "542 unpriced GPU-hours idle in 30 days"),
        (idle_document(), due(Worth.PREPAID), "542 prepaid GPU-hours idle in 30 days, 12 runs"),
        (dearer_document(), DEAR, "one run cost $182.00, expected $24.00: look at what changed"),
        (document(findings=[finding(fix=[], first_step="Exit when done: join threads")]), due(),
         "about $540 a month, 12 runs: exit when done"),
        (document(findings=[finding(fix=[], first_step="InputMode FastFile, at once")]), due(),
         "about $540 a month, 12 runs: InputMode FastFile"),
        (document(findings=[finding(fix=[fix("A.InstanceCount", 4, 2)])]), due(),
         "about $540 a month, 12 runs: use 2 x ml.g5.2xlarge"),
        (document(findings=[finding(fix=[fix("A.KeepAlivePeriodInSeconds", 4, None)])]), due(),
         "about $540 a month, 12 runs: remove KeepAlivePeriodInSeconds"),
        (document(findings=[finding(fix=[fix("C.S3Uri", None, "s3://<bucket>"),
                                         fix("MaxRuntime", 60, 3600)])]), due(),
         "about $540 a month, 12 runs: set MaxRuntime to 3600"),
        (document(findings=[finding(fix=[fix("CheckpointConfig.S3Uri", None, "s3://<bucket>")])]),
         due(), "about $540 a month, 12 runs: set CheckpointConfig.S3Uri"),
    ],
)  # fmt: skip
def test_the_first_line_is_the_news(
    audit: AuditDocument, notify: AlertDecision, title: str
) -> None:
    """The family by its last part, its month to two digits, and one thing to do."""
    family = audit["job"]["family"]
    audit["job"]["family"] = f"training/pytorch/train.py/{family}"
    assert card_of(audit, notify).title.startswith(f"{family}: {title}")


def saves(audit: AuditDocument, **more: Any) -> str:
    """The line beside the parameter, or the first step."""
    return next(
        line.text for line in card_of(audit, due(**more)).lines if "a run" in line.text
        or "tuning job" in line.text or "lost" in line.text or "not known" in line.text
    )  # fmt: skip


@pytest.mark.parametrize(
    ("audit", "says"),
    [
        (document(), "saves $1.53 a run, $540 a month"),
        (estimated_document(), "saves about $0.96 a run, $540 a month"),
        (rollup_document(), "saves $3.80 in such a tuning job"),
        (perhaps_lost_document(), "up to $4.55 was lost, $540 a month"),
        (document(findings=[finding(saving_usd=None, saving_alone_usd=None)]),
         "its saving is not known"),
    ],
)  # fmt: skip
def test_what_is_saved_is_said_once_a_run_and_once_a_month(audit: AuditDocument, says: str) -> None:
    """Of a tuning job once: it does not come again."""
    assert saves(audit) == says


def labelled(audit: AuditDocument, label: str) -> str:
    """The text after a label."""
    return next((one.text for one in card_of(audit, due()).lines if one.label == label), "")


@pytest.mark.parametrize(
    ("parameter", "new", "line"),
    [
        ("ResourceConfig.InstanceCount", 1, "ResourceConfig.InstanceCount = 1"),
        ("ResourceConfig.InstanceType", "ml.g4dn.xlarge", 'InstanceType = "ml.g4dn.xlarge"'),
        ("CheckpointConfig.S3Uri", "s3://<bucket>/<prefix>",
         'CheckpointConfig.S3Uri = "s3://…"'),
        ("InputDataConfig[train].InputMode", "FastFile",
         'InputDataConfig[train].InputMode = "FastFile"'),
    ],
)  # fmt: skip
def test_the_line_to_paste_stands_alone(parameter: str, new: Any, line: str) -> None:
    """Its path stays where it fits, or says what the name does not; three at most, none open."""
    ways = [fix(parameter, None, new)] * 4
    lines = card_of(document(findings=[finding(fix=ways)]), due()).lines
    assert [one.text for one in lines if one.code] == [line, line, line]
    assert lines[-1].text == "and 1 parameter more"


def test_the_advice_to_snooze_is_the_one_that_is_shown() -> None:
    """Though another finding of this run has more dollars."""
    notify = replace(due(), advice=advised("download-dominates"))
    card = card_of(document(), notify)
    assert card.rule == "download-dominates"
    assert card.title.endswith("set InputMode to FastFile")


def test_where_there_is_no_room_the_least_important_goes_first() -> None:
    """Second best and what is not counted, the caveat, then the command; the rest is cut."""
    short = document(findings=[type_finding(caution=None, summary="It idled."), finding()])
    assert labelled(short, "Second best") == "set InputMode to FastFile, $0.51 a run"
    long = document(findings=[type_finding(summary="It idled " * 60, caution="Try. " * 9)])
    card = card_of(long, replace(due(), advice=advised()))
    assert [line.label for line in card.lines] == ["Why", "Do this", ""]
    assert card.lines[0].text.endswith(" …")
    assert [line.label for line in card.more] == ["Snooze 30 days"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "spot-not-used about $0.90"),
        ({"judged": "no", "not_judged": ["No metrics came. Allow them."]},
         "No metrics came; spot-not-used about $0.90"),
        ({"audit": {**document()["audit"], "settled": False}},
         "what came late, it is judged again; spot-not-used about $0.90"),
    ],
)  # fmt: skip
def test_what_no_sum_has_is_said(changes: Any, says: str) -> None:
    """In two clauses."""
    findings = [type_finding(summary="It idled.", caution=None), document()["findings"][2]]
    findings.insert(1, finding(fix=[], saving_usd=Decimal("0.3")))
    assert labelled(document(findings=findings, **changes), "Not counted") == says


def test_a_dear_run_says_what_changed() -> None:
    """What it cost stands in the first line."""
    card = card_of(dearer_document(), DEAR)
    assert [line.text for line in card.lines] == ["Changed: Training +4 h 12 min."]
    assert card.place == "dear run, 111122223333"


def test_severity_is_that_of_the_month() -> None:
    """And not of the finding; what is worth a trial has none."""
    places = [card_of(document(), due(said=usd)).place for usd in ("12", "120", "512")]
    assert places == [f"{word}, 111122223333" for word in ("LOW", "MEDIUM", "HIGH")]
    assert card_of(trial_document(), due(Worth.TRIAL)).place == "trial, 111122223333"


def test_chat_gets_neither_s3_paths_nor_role_names() -> None:
    """A channel has more readers than the account: paths and roles are taken out of failures."""
    failed = lost_document()
    failed["findings"][0]["summary"] = (
        "arn:aws:sts::111122223333:assumed-role/Trainer/SageMaker may not read s3://bucket/key.csv"
    )
    assert labelled(failed, "Why") == "[path] may not read [path]"


def test_a_long_name_of_an_owner_or_family_is_cut_in_the_middle() -> None:
    """Numbers and parameters never are."""
    audit = document(job=job(owner="o" * 60, family="f" * 63))
    card = card_of(audit, due())
    assert len(f"{card.owner_shown}, {card.place}") == WIDTH
    assert card.title.endswith("ffff: about $540 a month, 12 runs: use 1 x ml.g4dn.xlarge")
