import html
import json
import re
import textwrap
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from sageaudit.domain.advice.comparison import CostSpike
from sageaudit.domain.advice.totals import Month
from sageaudit.domain.alert.alert import AlertDecision, AlertKind, FollowUpReason
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.errors import MalformedData
from sageaudit.output.text import plain, slack, teams
from sageaudit.output.text.card import (
    MAX_ROWS,
    ROW_WIDTH,
    CardLine,
    Check,
    MessageCard,
    Notice,
    parse_notice,
)
from sageaudit.output.text.links import HistoryLocation
from sageaudit.structs import replace
from tests.fakes.deliver_function import PAYLOADS, notice_body
from tests.fakes.documents import document, finding, fix, job
from tests.fakes.hostile import documents, whole_documents
from tests.fakes.lambda_events import PK
from tests.fakes.messages import document_card, open_advice
from tests.fakes.sample_documents import (
    cost_spike_document,
    estimated_document,
    lost_document,
    possibly_lost_document,
    rollup_document,
    trial_document,
)
from tests.golden.regenerate import messages

DEAR = AlertDecision(AlertKind.COST_SPIKE, spike=CostSpike(Decimal(24), Decimal(182)))
LINK = re.compile(r"<[^<>|]*\|([^<>]*)>")


def due(worth: AmountKind = AmountKind.COUNTED, said: str = "541.7", **more: Any) -> AlertDecision:
    """A message about 12 runs of a month."""
    runs = more.pop("runs", 12)
    month = Month(worth, Decimal(more.pop("total", said)), Decimal(said), runs, occasions=runs)
    return AlertDecision(amount_kind=worth, month=month, saves=month, **more)


def rows_of(audit: AuditDocument, notify: AlertDecision) -> list[str]:
    """What a phone shows of the Slack message."""
    blocks = slack.make_payload(document_card(audit, notify))["blocks"]
    lines = "\n".join(block["text"]["text"] for block in blocks).split("\n")
    shown = [html.unescape(LINK.sub(r"\1", line)) for line in lines]
    plain_lines = [line.replace("*", "").replace("`", "") for line in shown]
    return [row for line in plain_lines for row in textwrap.wrap(line, ROW_WIDTH) or [""]]


@pytest.mark.parametrize("name", [*messages()])
def test_a_card_is_read_on_a_phone_without_scrolling(name: str) -> None:
    """At most 18 rows with its commands, and as many lines in a mail."""
    audit, notify = messages()[name]
    assert len(rows_of(audit, notify)) <= MAX_ROWS
    assert (
        len(plain.make_payload(document_card(audit, notify))["message"].strip().split("\n"))
        <= MAX_ROWS
    )


@whole_documents
@given(documents())
def test_any_card_keeps_its_rows(audit: AuditDocument) -> None:
    """Also with texts that attack, and where a row more is that of a word of 1,000 letters."""
    notify = replace(due(), recommendation=open_advice())
    assert (
        len(plain.make_payload(document_card(audit, notify))["message"].strip().split("\n"))
        <= MAX_ROWS
    )
    card = document_card(audit, notify)
    assert card.commands[-1].text == "sageaudit advice snooze abcdefgh"


@pytest.mark.parametrize(
    ("audit", "notify", "title"),
    [
        pytest.param(
            document(),
            due(),
            "wastes about $540 a month, 12 runs: use 1 x ml.g4dn.xlarge",
            id="a month's waste to two digits",
        ),
        pytest.param(
            document(),
            due(said="9.46", runs=1),
            "wastes about $9.50 a month, 1 run: use",
            id="the waste of one run",
        ),
        pytest.param(
            document(),
            due(said="1249"),
            "wastes about $1,200 a month, 12 runs: use",
            id="a waste of more than $1,000",
        ),
        pytest.param(
            document(),
            due(said="0"),
            "wasted an unknown amount in 12 runs: use",
            id="a waste of nothing known",
        ),
        pytest.param(
            document(),
            due(total="61"),
            "is heading for $540 of waste a month, after 12 runs: use",
            id="waste that is extrapolated from few dollars",
        ),
        pytest.param(
            document(),
            due(total="61", runs=1),
            "wasted about $61 in 1 run: use",
            id="one run with more waste a month than was spent",
        ),
        pytest.param(
            document(),
            due(kind=AlertKind.FOLLOW_UP, follow_up_reason=FollowUpReason.CAME_BACK),
            "again wastes about $540 a month, 12 runs: use",
            id="waste that came back",
        ),
        pytest.param(
            lost_document(), due(), "loses about $540 a month, 12 runs: look at it", id="a lost run"
        ),
        pytest.param(
            possibly_lost_document(),
            due(),
            "may lose about $540 a month, 12 runs: set",
            id="a run that may be lost",
        ),
        pytest.param(
            trial_document(),
            due(AmountKind.POSSIBLE),
            "might save about $540 a month, 12 runs: try EnableManagedSpotTraining = true",
            id="a trial",
        ),
        pytest.param(
            rollup_document(),
            due(total="61", runs=500),
            "wasted about $3.80 in a tuning job: use ml.g4dn.xlarge",
            id="a tuning job",
        ),
        pytest.param(
            cost_spike_document(),
            DEAR,
            "cost $182.00 in one run, expected $24.00: look at what changed",
            id="a run that cost far more than its like",
        ),
        pytest.param(
            document(findings=[finding(fix=[], first_step="Exit when done: join threads")]),
            due(),
            "wastes about $540 a month, 12 runs: exit when done",
            id="a first step in words",
        ),
        pytest.param(
            document(findings=[finding(fix=[], first_step="InputMode FastFile, at once")]),
            due(),
            "wastes about $540 a month, 12 runs: InputMode FastFile",
            id="a first step that begins with a parameter",
        ),
        pytest.param(
            document(findings=[finding(fix=[fix("A.InstanceCount", 4, 2)])]),
            due(),
            "wastes about $540 a month, 12 runs: use 2 x ml.g5.2xlarge",
            id="fewer instances",
        ),
        pytest.param(
            document(findings=[finding(fix=[fix("A.KeepAlivePeriodInSeconds", 4, None)])]),
            due(),
            "wastes about $540 a month, 12 runs: remove KeepAlivePeriodInSeconds",
            id="a parameter to remove",
        ),
        pytest.param(
            document(
                findings=[
                    finding(
                        fix=[fix("C.S3Uri", None, "s3://<bucket>"), fix("MaxRuntime", 60, 3600)]
                    )
                ]
            ),
            due(),
            "wastes about $540 a month, 12 runs: set MaxRuntime to 3600",
            id="the first parameter without a place to fill in",
        ),
        pytest.param(
            document(
                findings=[finding(fix=[fix("CheckpointConfig.S3Uri", None, "s3://<bucket>")])]
            ),
            due(),
            "wastes about $540 a month, 12 runs: set CheckpointConfig.S3Uri",
            id="nothing but a place to fill in",
        ),
    ],
)
def test_the_first_line_is_the_news(
    audit: AuditDocument, notify: AlertDecision, title: str
) -> None:
    """The family by its last part, its month to two digits, and one thing to do."""
    family = audit["job"]["family"]
    audit["job"]["family"] = f"training/pytorch/train.py/{family}"
    assert document_card(audit, notify).title.startswith(f"{family} {title}")


def saves(audit: AuditDocument, **more: Any) -> str:
    """The line beside the parameter, or the first step."""
    return next(
        line.text
        for line in document_card(audit, due(**more)).lines
        if "this run" in line.text or "this tuning job" in line.text
    )


@pytest.mark.parametrize(
    ("audit", "says"),
    [
        pytest.param(
            document(), "saves $1.53 of this run's $4.55; $540 a month", id="a saving and its month"
        ),
        pytest.param(
            estimated_document(),
            "saves about $0.96 of this run's about $1.39; $540 a month",
            id="a saving at estimated rates",
        ),
        pytest.param(
            rollup_document(),
            "saves $3.80 of this tuning job's $12.30",
            id="a tuning job's saving without a month",
        ),
        pytest.param(
            possibly_lost_document(),
            "Up to all of this run's $4.55 was lost; $540 a month",
            id="a run that may be lost",
        ),
        pytest.param(
            document(findings=[finding(saving_usd=None, saving_alone_usd=None)]),
            "its saving is not known; this run cost $4.55",
            id="a saving that is not known",
        ),
    ],
)
def test_what_is_saved_stands_beside_what_the_run_cost(audit: AuditDocument, says: str) -> None:
    """And what it comes to in a month; of a tuning job not: it does not come again."""
    assert saves(audit) == says


def labelled(audit: AuditDocument, label: str) -> str:
    """The text after a label."""
    return next((one.text for one in document_card(audit, due()).lines if one.label == label), "")


@pytest.mark.parametrize(
    ("parameter", "new", "line"),
    [
        pytest.param(
            "ResourceConfig.InstanceCount",
            1,
            "ResourceConfig.InstanceCount = 1",
            id="a count with its path",
        ),
        pytest.param(
            "ResourceConfig.InstanceType",
            "ml.g4dn.xlarge",
            'InstanceType = "ml.g4dn.xlarge"',
            id="an instance type without its path, which does not fit",
        ),
        pytest.param(
            "CheckpointConfig.S3Uri",
            "s3://<bucket>/<prefix>",
            'CheckpointConfig.S3Uri = "s3://…"',
            id="a value with places to fill in",
        ),
        pytest.param(
            "InputDataConfig[train].InputMode",
            "FastFile",
            'InputDataConfig[train].InputMode = "FastFile"',
            id="a channel with its path",
        ),
    ],
)
def test_the_line_to_paste_stands_alone(parameter: str, new: Any, line: str) -> None:
    """Its path stays where it fits, or says what the name does not; three at most, none open."""
    ways = [fix(parameter, None, new)] * 4
    lines = document_card(document(findings=[finding(fix=ways)]), due()).lines
    assert [one.text for one in lines if one.is_code] == [line, line, line]
    assert lines[-1].text == "and 1 parameter more"


def test_the_advice_to_snooze_is_the_one_that_is_shown() -> None:
    """Though another finding of this run has more dollars."""
    notify = replace(due(), recommendation=open_advice("download-dominates"))
    card = document_card(document(), notify)
    assert card.rule == "download-dominates"
    assert card.title.endswith("set InputMode to FastFile")


def test_where_there_is_no_room_the_least_important_goes_first() -> None:
    """What is not counted, then the command that shows all; the rest is cut, the caveat is not."""
    long = document(
        findings=[finding("gpu-underused", summary="It idled " * 60, caution="Try. " * 9)]
    )
    card = document_card(long, replace(due(), recommendation=open_advice()))
    assert [line.label for line in card.lines] == ["Why", "Do this", "", "Caveat"]
    assert card.lines[0].text.endswith(" …")
    assert [line.label for line in card.commands] == ["Snooze 30 days"]


@pytest.mark.parametrize(
    ("caution", "says"),
    [
        pytest.param(
            "GPUs take turns. Counted as 1.52 times as long; up to 3.20 times as long it "
            "still saves.",
            "it runs 1.5 times as long",
            id="the counted time",
        ),
        pytest.param(
            "On 2 hosts it takes up to 1.8 times as long, which would cost more.",
            "it runs up to 1.8 times as long",
            id="the longest time",
        ),
        pytest.param(
            "T4 took 1.2 to 1.5 times as long as A10G. Counted as 1.02 times as long. Try it.",
            "T4 took 1.2 to 1.5 times as long as A10G.",
            id="a time that is nearly the same",
        ),
        pytest.param(
            "A cheaper GPU, not a faster one (counted as 1.30 times as long).",
            "it runs 1.3 times as long",
            id="the counted time in brackets",
        ),
        pytest.param(
            "Check that the data fits. It is large.",
            "Check that the data fits.",
            id="another caution",
        ),
    ],
)
def test_that_the_run_takes_longer_is_the_caveat_of_a_card(caution: str, says: str) -> None:
    """It would stop a reader; else the first sentence of the caution."""
    assert (
        labelled(document(findings=[finding("gpu-underused", caution=caution)]), "Caveat") == says
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({}, "spot-not-used about $0.90", id="another possible saving"),
        pytest.param(
            {"judged": "no", "not_judged": ["No metrics came. Allow them."]},
            "No metrics came; spot-not-used about $0.90",
            id="what was not judged",
        ),
        pytest.param(
            {"audit": {"settled": False}},
            "what came late, it is judged again; spot-not-used about $0.90",
            id="what came late",
        ),
    ],
)
def test_what_no_sum_has_is_said(changes: Any, says: str) -> None:
    """In two clauses."""
    findings = [
        finding("gpu-underused", summary="It idled.", caution=None),
        document()["findings"][2],
    ]
    findings.insert(1, finding(fix=[], saving_usd=Decimal("0.3")))
    assert labelled(document(findings=findings, **changes), "Not counted") == says


def test_a_dear_run_says_what_changed() -> None:
    """What it cost stands in the first line."""
    card = document_card(cost_spike_document(), DEAR)
    assert [line.text for line in card.lines] == ["Changed: Training +4 h 12 min."]
    assert card.account_region == "111122223333, us-east-1"


@pytest.mark.parametrize("name", [*messages()])
def test_no_card_shows_a_severity(name: str) -> None:
    """Its dollars are a month's; the severity that `show` prints is of a run."""
    audit, notify = messages()[name]
    card = document_card(audit, notify)
    shown = " ".join(
        [card.title, card.owner_and_place, *(line.labelled_text for line in card.lines)]
    )
    assert not re.search(r"\b(HIGH|MEDIUM|LOW)\b", shown)


def test_the_commands_of_a_card_name_the_stacks_table_and_its_region() -> None:
    """So that they work where they are pasted, also with a job's name that a shell would read."""
    place = HistoryLocation.for_table("SageAudit-History", "eu-west-1")
    audit = document(job=job(name="a;b"), findings=[])
    card = document_card(audit, replace(due(), recommendation=open_advice()), place)
    where = "--table SageAudit-History --table-region eu-west-1"
    assert [line.text for line in card.commands] == [
        f"sageaudit show 'a;b' {where}",
        f"sageaudit advice snooze abcdefgh {where}",
    ]


def test_the_longest_names_are_whole_in_a_command_of_every_service() -> None:
    """A table's name has up to 255 characters, a job's 63."""
    place = HistoryLocation.for_table("t" * 255, "us-gov-east-1")
    command = place.command("show", "j" * 63)
    card = MessageCard("news", commands=(CardLine(command, "Numbers", is_code=True),))
    assert command in plain.make_payload(card)["message"]
    assert f"`{command}`" in slack.make_payload(card)["blocks"][-1]["text"]["text"]
    assert f"Numbers: {command}" in [*teams.text_lines(teams.make_payload(card))]


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
    card = document_card(audit, due())
    assert len(f"{card.short_owner}, {card.account_region}") == ROW_WIDTH
    assert card.title.endswith("ffff wastes about $540 a month, 12 runs: use 1 x ml.g4dn.xlarge")


CHECKS: dict[str, Check] = {"sns": plain.check_payload, "slack": slack.check_payload}


def test_a_body_is_read_back_as_it_was_written() -> None:
    """For each channel."""
    for channel, payload in PAYLOADS.items():
        assert parse_notice(notice_body(channel), CHECKS) == Notice(
            f"{PK}|1|{channel}", channel, payload
        )


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"schema": 2}, "schema"),
        ({"schema": None}, "schema"),
        ({"channel": "teams"}, "notice_id"),
        ({"channel": None}, "channel"),
        ({"channel": ["slack"]}, "channel"),
        ({"notice_id": ""}, "notice_id"),
        ({"notice_id": 7}, "notice_id"),
        ({"notice_id": "a|1|sns"}, "notice_id"),
        ({"notice_id": "a" * 3_000 + "|slack"}, "notice_id"),
        ({"payload": None}, "payload"),
        ({"payload": {"text": "x"}}, "payload.blocks"),
        ({"payload": {"text": 7, "blocks": []}}, "payload.text"),
        ({"payload": {"text": "x", "blocks": ["y"]}}, "payload"),
        ({"payload": {"text": "x", "blocks": [{"type": "header"}]}}, "payload"),
        ({"payload": {"text": "x", "blocks": [{"text": "no type"}]}}, "payload"),
        ({"payload": {"text": "x", "blocks": [{"type": "section", "text": 7}]}}, "payload"),
        ({"payload": {"text": "x", "blocks": [{"type": "section", "fields": 7}]}}, "payload"),
        (
            {
                "channel": "sns",
                "notice_id": "a|sns",
                "payload": {**PAYLOADS["sns"], "attributes": {"severity": "high"}},
            },
            "payload",
        ),
    ],
)
def test_a_body_that_is_no_notice_names_its_key(change: dict[str, Any], key: str) -> None:
    """One sentence for the dead-letter queue."""
    with pytest.raises(MalformedData) as raised:
        parse_notice(json.dumps({**json.loads(notice_body()), **change}), CHECKS)
    assert raised.value.key == key


def test_a_notice_of_a_channel_that_left_the_policy_is_one() -> None:
    """Its payload cannot be checked: it is not posted."""
    assert parse_notice(notice_body("sns"), {"slack": slack.check_payload}).channel == "sns"


@pytest.mark.parametrize("body", ["", "{", "[]", "null", "7", '"x"', "\ud800", "[" * 200_000])
def test_a_body_that_is_no_object_is_malformed(body: str) -> None:
    """Nothing else is raised."""
    with pytest.raises(MalformedData, match="body "):
        parse_notice(body, CHECKS)


def test_a_repeat_says_so_where_it_is_read_first() -> None:
    """In the notification, the headline and the subject; the rest is as it was."""
    post = slack.mark_as_repeat(PAYLOADS["slack"])
    assert post["text"] == "(possible repeat) HIGH  $2.04 was avoidable"
    assert post["blocks"][0]["text"]["text"] == "(possible repeat) HIGH"
    assert post["blocks"][1] == PAYLOADS["slack"]["blocks"][1]
    mail = plain.mark_as_repeat(PAYLOADS["sns"])
    assert mail["subject"] == "(possible repeat) HIGH $2.04 was avoidable"
    assert mail["message"] == "(possible repeat) HIGH  $2.04\n"
    assert mail["attributes"] == PAYLOADS["sns"]["attributes"]
