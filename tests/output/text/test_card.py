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

SPIKE = AlertDecision(AlertKind.COST_SPIKE, spike=CostSpike(Decimal(24), Decimal(182)))
LINK = re.compile(r"<[^<>|]*\|([^<>]*)>")


def decide(
    amount_kind: AmountKind = AmountKind.COUNTED, monthly: str = "541.7", **changes: Any
) -> AlertDecision:
    """Returns the decision to send a message about 12 runs in a month."""
    runs = changes.pop("runs", 12)
    month = Month(
        amount_kind, Decimal(changes.pop("total", monthly)), Decimal(monthly), runs, occasions=runs
    )
    return AlertDecision(amount_kind=amount_kind, month=month, saves=month, **changes)


def slack_rows(audit: AuditDocument, decision: AlertDecision) -> list[str]:
    """Returns the rows of the Slack message on a phone."""
    blocks = slack.make_payload(document_card(audit, decision))["blocks"]
    lines = "\n".join(block["text"]["text"] for block in blocks).split("\n")
    texts = [html.unescape(LINK.sub(r"\1", line)) for line in lines]
    plain_lines = [line.replace("*", "").replace("`", "") for line in texts]
    return [row for line in plain_lines for row in textwrap.wrap(line, ROW_WIDTH) or [""]]


@pytest.mark.parametrize("name", [*messages()])
def test_a_card_fits_a_phones_screen(name: str) -> None:
    """It has at most 18 rows with its commands, and at most 18 lines in a mail."""
    audit, decision = messages()[name]
    assert len(slack_rows(audit, decision)) <= MAX_ROWS
    assert (
        len(plain.make_payload(document_card(audit, decision))["message"].strip().split("\n"))
        <= MAX_ROWS
    )


@whole_documents
@given(documents())
def test_any_card_has_at_most_18_lines(audit: AuditDocument) -> None:
    """Hostile texts do not change that."""
    decision = replace(decide(), recommendation=open_advice())
    assert (
        len(plain.make_payload(document_card(audit, decision))["message"].strip().split("\n"))
        <= MAX_ROWS
    )
    card = document_card(audit, decision)
    assert card.commands[-1].text == "sageaudit advice snooze abcdefgh"


@pytest.mark.parametrize(
    ("audit", "decision", "title"),
    [
        pytest.param(
            document(),
            decide(),
            "wastes about $540 a month (12 runs): use 1 x ml.g4dn.xlarge",
            id="a month's waste to two digits",
        ),
        pytest.param(
            document(),
            decide(monthly="9.46", runs=1),
            "wastes about $9.50 a month (1 run): use",
            id="the waste of one run",
        ),
        pytest.param(
            document(),
            decide(monthly="1249"),
            "wastes about $1,200 a month (12 runs): use",
            id="a waste of more than $1,000",
        ),
        pytest.param(
            document(),
            decide(monthly="0"),
            "wasted an unknown amount in 12 runs: use",
            id="a waste of nothing known",
        ),
        pytest.param(
            document(),
            decide(total="61"),
            "will waste about $540 a month at this rate (12 runs so far): use",
            id="waste that is extrapolated from few dollars",
        ),
        pytest.param(
            document(),
            decide(total="61", runs=1),
            "wasted about $61 in 1 run: use",
            id="one run with more waste a month than was spent",
        ),
        pytest.param(
            document(),
            decide(kind=AlertKind.FOLLOW_UP, follow_up_reason=FollowUpReason.CAME_BACK),
            "again wastes about $540 a month (12 runs): use",
            id="waste that came back",
        ),
        pytest.param(
            lost_document(),
            decide(),
            "loses about $540 a month (12 runs): find out why it left no result",
            id="a lost run",
        ),
        pytest.param(
            possibly_lost_document(),
            decide(),
            "loses up to about $540 a month (12 runs): set",
            id="a run that may be lost",
        ),
        pytest.param(
            trial_document(),
            decide(AmountKind.POSSIBLE),
            "might save about $540 a month (12 runs): try EnableManagedSpotTraining = true",
            id="a trial",
        ),
        pytest.param(
            rollup_document(),
            decide(total="61", runs=500),
            "wasted about $3.80 in a tuning job: use ml.g4dn.xlarge",
            id="a tuning job",
        ),
        pytest.param(
            cost_spike_document(),
            SPIKE,
            "One run of train-bert cost $182.00, but $24.00 was expected: look at what changed",
            id="a cost spike",
        ),
        pytest.param(
            document(findings=[finding(fix=[], first_step="Exit when done: join threads")]),
            decide(),
            "wastes about $540 a month (12 runs): exit when done",
            id="a first step in words",
        ),
        pytest.param(
            document(findings=[finding(fix=[], first_step="InputMode FastFile, at once")]),
            decide(),
            "wastes about $540 a month (12 runs): InputMode FastFile",
            id="a first step that begins with a parameter",
        ),
        pytest.param(
            document(findings=[finding(fix=[fix("A.InstanceCount", 4, 2)])]),
            decide(),
            "wastes about $540 a month (12 runs): use 2 x ml.g5.2xlarge",
            id="fewer instances",
        ),
        pytest.param(
            document(findings=[finding(fix=[fix("A.KeepAlivePeriodInSeconds", 4, None)])]),
            decide(),
            "wastes about $540 a month (12 runs): remove KeepAlivePeriodInSeconds",
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
            decide(),
            "wastes about $540 a month (12 runs): set MaxRuntime to 3600",
            id="the first parameter without a place to fill in",
        ),
        pytest.param(
            document(
                findings=[finding(fix=[fix("CheckpointConfig.S3Uri", None, "s3://<bucket>")])]
            ),
            decide(),
            "wastes about $540 a month (12 runs): set CheckpointConfig.S3Uri",
            id="nothing but a place to fill in",
        ),
    ],
)
def test_the_first_line_has_family_amount_and_step(
    audit: AuditDocument, decision: AlertDecision, title: str
) -> None:
    """It has the family's last part, its monthly amount to two digits, and one thing to do."""
    family = audit["job"]["family"]
    audit["job"]["family"] = f"training/pytorch/train.py/{family}"
    start = title if title.startswith("One run of") else f"{family} {title}"
    assert document_card(audit, decision).title.startswith(start)


def saving_line(audit: AuditDocument, **changes: Any) -> str:
    """Returns the line beside the parameter or the first step."""
    return next(
        line.text
        for line in document_card(audit, decide(**changes)).lines
        if "this run" in line.text or "this tuning job" in line.text
    )


@pytest.mark.parametrize(
    ("audit", "expected"),
    [
        pytest.param(
            document(),
            "it saves $1.53 of this run's $4.55, or about $540 a month",
            id="a saving and its month",
        ),
        pytest.param(
            estimated_document(),
            "it saves about $0.96 of this run's cost (about $1.39), or about $540 a month",
            id="a saving at estimated rates",
        ),
        pytest.param(
            rollup_document(),
            "it saves $3.80 of this tuning job's $12.30",
            id="a tuning job's saving without a month",
        ),
        pytest.param(
            possibly_lost_document(),
            "Up to $4.55, the full cost of this run, may have been lost: up to about $540 a month",
            id="a run that may be lost",
        ),
        pytest.param(
            document(findings=[finding(saving_usd=None, saving_alone_usd=None)]),
            "its saving is unknown; this run cost $4.55",
            id="a saving that is not known",
        ),
    ],
)
def test_a_saving_is_shown_with_the_runs_cost(audit: AuditDocument, expected: str) -> None:
    """The monthly amount follows, except for a tuning job, which is not repeated."""
    assert saving_line(audit) == expected


def text_with_label(audit: AuditDocument, label: str) -> str:
    """Returns the text after a label; "" if the card does not have it."""
    return next(
        (
            card_line.text
            for card_line in document_card(audit, decide()).lines
            if card_line.label == label
        ),
        "",
    )


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
def test_the_line_to_paste_has_its_own_line(parameter: str, new: Any, line: str) -> None:
    """It has its path if that fits, or if the name is unclear without it.

    A card has at most three.
    """
    ways = [fix(parameter, None, new)] * 4
    lines = document_card(document(findings=[finding(fix=ways)]), decide()).lines
    assert [card_line.text for card_line in lines if card_line.is_code] == [line, line, line]
    assert lines[-1].text == "and 1 more parameter"


def test_a_card_shows_the_recommendation_that_it_snoozes() -> None:
    """Another finding of the run with more dollars does not replace it."""
    decision = replace(decide(), recommendation=open_advice("download-dominates"))
    card = document_card(document(), decision)
    assert card.rule == "download-dominates"
    assert card.title.endswith("set InputMode to FastFile")


def test_a_full_card_drops_the_least_important_lines_first() -> None:
    """Uncounted amounts are dropped, then the command with details.

    The reason is cut, the caveat is not.
    """
    long = document(
        findings=[finding("gpu-underused", summary="It idled " * 60, caution="Try. " * 9)]
    )
    card = document_card(long, replace(decide(), recommendation=open_advice()))
    assert [line.label for line in card.lines] == ["Why", "Do this", "", "Caveat"]
    assert card.lines[0].text.endswith(" …")
    assert [line.label for line in card.commands] == ["Snooze 30 days"]


@pytest.mark.parametrize(
    ("caution", "expected"),
    [
        pytest.param(
            "GPUs take turns. Counted as 1.52 times as long; up to 3.20 times as long it "
            "still saves.",
            "it runs 1.52 times as long",
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
def test_a_longer_run_time_is_the_caveat_of_a_card(caution: str, expected: str) -> None:
    """Without one the caveat is the caution's first sentence."""
    assert (
        text_with_label(document(findings=[finding("gpu-underused", caution=caution)]), "Caveat")
        == expected
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, "spot-not-used about $0.90", id="another possible saving"),
        pytest.param(
            {"judged": "no", "not_judged": ["No metrics came. Allow them."]},
            "No metrics came; spot-not-used about $0.90",
            id="what was not judged",
        ),
        pytest.param(
            {"audit": {"settled": False}},
            "late metrics or costs (the job will be audited again); spot-not-used about $0.90",
            id="what came late",
        ),
    ],
)
def test_a_card_shows_what_is_not_counted(changes: Any, expected: str) -> None:
    """It has at most two clauses."""
    findings = [
        finding("gpu-underused", summary="It idled.", caution=None),
        document()["findings"][2],
    ]
    findings.insert(1, finding(fix=[], saving_usd=Decimal("0.3")))
    assert text_with_label(document(findings=findings, **changes), "Not counted") == expected


def test_a_cost_spike_says_what_changed() -> None:
    """Its cost is in the first line."""
    card = document_card(cost_spike_document(), SPIKE)
    assert [line.text for line in card.lines] == ["Training (4 h 12 min longer)."]
    assert card.place_or_period == "111122223333, us-east-1"


@pytest.mark.parametrize("name", [*messages()])
def test_no_card_shows_a_severity(name: str) -> None:
    """Its dollars are a month's, while the severity in `sageaudit show` is a run's."""
    audit, decision = messages()[name]
    card = document_card(audit, decision)
    text = " ".join([card.title, card.scope_line, *(line.labelled_text for line in card.lines)])
    assert not re.search(r"\b(HIGH|MEDIUM|LOW)\b", text)


def test_the_commands_of_a_card_name_the_stacks_table_and_its_region() -> None:
    """They work when pasted, also with a job's name that a shell would interpret."""
    place = HistoryLocation.for_table("SageAudit-History", "eu-west-1")
    audit = document(job=job(name="a;b"), findings=[])
    card = document_card(audit, replace(decide(), recommendation=open_advice()), place)
    where = "--table SageAudit-History --table-region eu-west-1"
    assert [line.text for line in card.commands] == [
        f"sageaudit show 'a;b' {where}",
        f"sageaudit advice snooze abcdefgh {where}",
    ]


def test_the_longest_names_are_whole_in_a_command_of_every_service() -> None:
    """A table's name has up to 255 characters, a job's 63."""
    place = HistoryLocation.for_table("t" * 255, "us-gov-east-1")
    command = place.command("show", "j" * 63)
    card = MessageCard("news", commands=(CardLine(command, "Details", is_code=True),))
    assert command in plain.make_payload(card)["message"]
    assert f"`{command}`" in slack.make_payload(card)["blocks"][-1]["text"]["text"]
    assert f"Details: {command}" in [*teams.text_lines(teams.make_payload(card))]


def test_chat_gets_neither_s3_paths_nor_role_names() -> None:
    """A channel has more readers than the account, so both are removed from failure messages."""
    failed = lost_document()
    failed["findings"][0]["summary"] = (
        "arn:aws:sts::111122223333:assumed-role/Trainer/SageMaker may not read s3://bucket/key.csv"
    )
    assert text_with_label(failed, "Why") == "[path] may not read [path]"


def test_a_long_name_of_an_owner_or_family_is_cut_in_the_middle() -> None:
    """Numbers and parameters are not cut."""
    audit = document(job=job(owner="o" * 60, family="f" * 63))
    card = document_card(audit, decide())
    assert len(f"{card.short_scope}, {card.place_or_period}") == ROW_WIDTH
    assert card.title.endswith("ffff wastes about $540 a month (12 runs): use 1 x ml.g4dn.xlarge")


CHECKS: dict[str, Check] = {"sns": plain.check_payload, "slack": slack.check_payload}


def test_a_notice_is_parsed_as_it_was_written() -> None:
    """This holds for each channel."""
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
def test_a_malformed_notice_names_its_key(change: dict[str, Any], key: str) -> None:
    """The error is one sentence for the dead-letter queue."""
    with pytest.raises(MalformedData) as raised:
        parse_notice(json.dumps({**json.loads(notice_body()), **change}), CHECKS)
    assert raised.value.key == key


def test_a_notice_of_a_removed_channel_is_parsed() -> None:
    """Its payload cannot be checked, and is not posted."""
    assert parse_notice(notice_body("sns"), {"slack": slack.check_payload}).channel == "sns"


@pytest.mark.parametrize("body", ["", "{", "[]", "null", "7", '"x"', "\ud800", "[" * 200_000])
def test_a_body_that_is_no_object_is_malformed(body: str) -> None:
    """No other error is raised."""
    with pytest.raises(MalformedData, match="body "):
        parse_notice(body, CHECKS)


def test_a_repeat_is_marked_in_its_first_line() -> None:
    """The notification, headline and subject are marked; the rest is unchanged."""
    post = slack.mark_as_repeat(PAYLOADS["slack"])
    assert post["text"] == "(possible repeat) HIGH  $2.04 was avoidable"
    assert post["blocks"][0]["text"]["text"] == "(possible repeat) HIGH"
    assert post["blocks"][1] == PAYLOADS["slack"]["blocks"][1]
    mail = plain.mark_as_repeat(PAYLOADS["sns"])
    assert mail["subject"] == "(possible repeat) HIGH $2.04 was avoidable"
    assert mail["message"] == "(possible repeat) HIGH  $2.04\n"
    assert mail["attributes"] == PAYLOADS["sns"]["attributes"]
