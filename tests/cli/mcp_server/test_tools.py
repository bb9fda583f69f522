"""What each tool answers, the command for the rest, and what it refuses."""

import json
import shlex
import sys
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from local import example
from sageaudit.cli import clock
from sageaudit.cli.mcp_server.answer import ServedHistory
from sageaudit.cli.mcp_server.server import TOOLS, call_by_name, listed_tool
from sageaudit.cli.query_options import HistoryChoice
from sageaudit.domain.advice.advice import State
from sageaudit.domain.money import format_usd
from sageaudit.domain.policy.policy import Policy
from sageaudit.queries.columns import FILTERS
from tests.fakes.command_line import Run
from tests.fakes.mcp_client import Answered, answered
from tests.house.test_commands_in_docs import parse_error

RECOMMENDER = "recommender-2026-11-18-06-14-48-344"
FAMILY = "training/pytorch-training/train.py/recommender"


class Tools:
    """The tools of the example company, at the example's time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.served = ServedHistory(HistoryChoice(path, None, None, None))

    def __call__(self, name: str, **arguments: Any) -> Answered:
        return answered(call_by_name(self.served, name, arguments))

    def error(self, name: str, **arguments: Any) -> str:
        answer = self(name, **arguments)
        assert answer.is_error, answer.text
        assert "\n" not in answer.text
        return answer.text


@pytest.fixture
def tools(company: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    """Returns the tools."""
    monkeypatch.setattr(clock, "utc_now", lambda: example.NOW)
    return Tools(company)


def without_words(row: dict[str, Any], keys: Any) -> dict[str, Any]:
    """Returns the row with only these keys."""
    return {key: row[key] for key in keys}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("top_jobs", {"sort": "waste", "filters": {"kind": "training", "min_usd": 5}}),
        ("top_jobs", {"filters": {"tag": {"project": "voice"}, "owner": "jonas"}}),
        ("spend_by", {"limit": 100}),
        ("spend_by", {"columns": "week", "limit": 100}),
        ("spend_by", {"columns": "project", "sort": "failed", "limit": 100}),
        ("spend_by", {"columns": "usage_type", "limit": 100}),
        ("spend_changes", {"limit": 100}),
        ("list_recommendations", {"limit": 100}),
        ("list_recommendations", {"state": "all", "family": "recommender", "limit": 100}),
    ],
)
def test_rows_are_those_of_the_command(
    tools: Tools, run: Run, name: str, arguments: dict[str, Any]
) -> None:
    """Each row has some keys of the command's row, with the same values, in the same order."""
    answer = tools(name, **arguments)
    printed = run(*shlex.split(answer.document["command"])[1:]).document()
    rows = answer.document["rows"]
    assert rows
    assert rows == [
        without_words(row, rows[0]) for row in printed["rows"][: len(rows)]
    ] or rows == [without_words(row, rows[0]) for row in printed["rows"][-len(rows) :]]
    assert answer.document["more"] is (len(rows) < len(printed["rows"]))


def test_the_audit_is_that_of_the_command(tools: Tools, run: Run) -> None:
    """Its keys are some of the command's, with the headline and the qualified amounts beside
    them.
    """
    answer = tools("show_audit", job=RECOMMENDER)
    printed = run(*shlex.split(answer.document["command"])[1:]).document()
    assert "$50.86 of $92.32 (55%) was avoidable" in answer.text
    assert answer.document["headline"] == "$50.86 of $92.32 (55%) was avoidable"
    assert answer.document["amounts"] == {
        "Spend": "$92.32",
        "Avoidable": "$50.86",
        "Lost": "$0.00",
        "Possible": "about $24",
        "Idle capacity": "about $66",
    }
    for key in ("avoidable_usd", "lost_usd", "possible_usd", "judged"):
        assert answer.document[key] == printed[key]
    shown, whole = answer.document["findings"][0], printed["findings"][0]
    assert shown["fix"] == whole["fix"]
    assert shown["dollars"] == "$50.86 avoidable"
    assert "evidence" not in shown


def test_what_if_needs_no_call_to_aws(tools: Tools) -> None:
    """The measurements of the history are used; types that do not fit are counted."""
    answer = tools("what_if", job=RECOMMENDER)
    assert "ml.g5.12xlarge" in answer.text
    best = answer.document["candidates"][0]
    assert (best["type"], best["fits"]) == ("ml.g5.12xlarge", True)
    assert best["saving_usd"] == pytest.approx(50.855236, abs=0.01)
    assert "rounded to tenths of a percent" in answer.text
    assert answer.document["more"]
    one = tools("what_if", job=RECOMMENDER, types=["ml.g5.24xlarge"])
    assert [row["type"] for row in one.document["candidates"]] == ["ml.g5.24xlarge"]


def test_a_request_is_checked_with_the_history(tools: Tools) -> None:
    """As an object or as its text. What earlier runs cost comes from the history."""
    request = {
        "TrainingJobName": "recommender-2026-11-30",
        "RoleArn": "arn:aws:iam::111122223333:role/train",
        "ResourceConfig": {"InstanceType": "ml.g5.48xlarge", "InstanceCount": 1},
    }
    by_object = tools("check_request", request=request, region="us-east-1")
    by_text = tools("check_request", request=json.dumps(request), region="us-east-1")
    assert by_object == by_text
    assert "At most" in by_object.text
    assert by_object.document["jobs"][0]["cost"]["at_most_usd"] > 0


def test_every_command_can_be_parsed(tools: Tools, tmp_path: Path) -> None:
    """Also that of a server with a table, a profile and a policy."""
    policy_path = tmp_path / "policy.toml"
    table = HistoryChoice(None, "no table", "eu-west-1", "audit")
    with_table = ServedHistory(table, Policy(), policy_path)
    answers = [
        tools("top_jobs", until="2026-11-20", filters={"interrupted": True, "type": "g5.xlarge"}),
        tools("spend_by", columns="owner,month", filters={"rule": "SA201"}),
        tools("spend_changes", column="project"),
        tools("list_recommendations", state="all", owner="ana"),
        tools("show_audit", job=RECOMMENDER),
        tools("what_if", job=RECOMMENDER, types=["ml.g5.xlarge"]),
        tools("check_request", request={"TrainingJobName": "a"}, pipeline="nightly run"),
        tools("explain_rule"),
        tools("instance_prices", type="ml.g5.xlarge"),
        answered(
            call_by_name(
                with_table,
                "check_request",
                {"request": {"TrainingJobName": "a"}, "region": "eu-west-1"},
            )
        ),
    ]
    commands = [answer.document["command"] for answer in answers]
    assert not [fault for command in commands if (fault := parse_error(command))]
    assert "--table 'no table' --profile audit" in commands[-1]
    assert f"--region eu-west-1 --policy {policy_path}" in commands[-1]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("top_jobs", {"limit": 0}, "Expected `int` >= 1 - at `$.limit`"),
        ("top_jobs", {"limit": 101}, "Expected `int` <= 100 - at `$.limit`"),
        ("top_jobs", {"limits": 1}, "which takes since, until, filters, limit, sort: Object"),
        ("top_jobs", {"filters": []}, "Expected `object`, got `array` - at `$.filters`"),
        ("top_jobs", {"filters": {"ownr": "ana"}}, "no filter ownr: did you mean owner?"),
        ("top_jobs", {"filters": {"owner": ["ana"]}}, "the filter owner takes one value"),
        ("top_jobs", {"filters": {"owner": {"a": 1}}}, "the filter owner takes one value"),
        ("top_jobs", {"filters": {"tag": {"team": None}}}, "tag has no value for a tag"),
        ("top_jobs", {"filters": {"tag": {"team": ["a"]}}}, "the filter tag takes one value"),
        ("top_jobs", {"filters": {"no_owner": "false"}}, "no_owner takes true or false"),
        ("top_jobs", {"filters": {"min_usd": "lots"}}, "min_usd lots is not an amount in USD"),
        ("top_jobs", {"filters": {"kind": "notebook"}}, "is none of training, processing"),
        ("top_jobs", {"filters": {"rule": "gpu-idle"}}, "use spend_by with the filter rule"),
        ("top_jobs", {"filters": {"owner": "a" * 301}}, "owner has more than 300 letters"),
        ("top_jobs", {"since": "a" * 301}, "Expected `str` of length <= 300"),
        ("top_jobs", {"since": "yesteryear"}, "yesteryear is not a time: write 30d"),
        ("top_jobs", {"sort": "cost"}, "Invalid enum value 'cost'"),
        ("spend_by", {"columns": "colour"}, "there is no column 'colour'"),
        ("spend_by", {"columns": "day,week"}, "only one of day, week and month"),
        ("spend_changes", {"column": "owner,kind"}, "give one column"),
        ("show_audit", {}, "missing required field `job`"),
        ("show_audit", {"job": "recomender-24"}, "no audit of recomender-24 is in this history"),
        ("show_audit", {"job": "speech-encoder24"}, "did you mean speech-encoder-24?"),
        ("show_audit", {"job": "arn:aws:s3:::x"}, "not the ARN of a SageMaker job"),
        ("what_if", {"job": RECOMMENDER, "types": ["ml.g5.huge"]}, "not in the catalogue"),
        ("check_request", {"request": "{"}, "the request is not JSON"),
        ("check_request", {"request": "[" * 100_000}, "the request is not JSON"),
        ("check_request", {"request": "[1]"}, "the request is not a JSON object"),
        ("check_request", {"request": {"a": 1}}, "the request"),
        ("check_request", {"request": {}, "region": "mars"}, "mars is not a region"),
        ("explain_rule", {"rule": "gpu-idel"}, "did you mean gpu-idle?"),
        ("instance_prices", {"type": "ml.g5.xlrge"}, "did you mean ml.g5.xlarge?"),
        ("topjobs", {}, "there is no tool topjobs: did you mean top_jobs?"),
    ],
)
def test_a_bad_call_is_answered_with_one_sentence(
    tools: Tools, name: str, arguments: dict[str, Any], expected: str
) -> None:
    """It says what is wrong and, where possible, what was meant."""
    assert expected in tools.error(name, **arguments)


def test_what_models_often_send_is_understood(tools: Tools) -> None:
    """Null or an empty text for an argument that is not given, and a number as a text."""
    plain = tools("top_jobs", limit=3)
    filters = {"owner": None, "family": "", "no_owner": False}
    assert tools("top_jobs", since="", limit="3", until=None, filters=filters) == plain
    tag_as_text = tools("top_jobs", filters={"tag": "project=voice"})
    assert tag_as_text == tools("top_jobs", filters={"tag": {"project": "voice"}})


@pytest.mark.parametrize("name", ["top_jobs", "spend_by", "spend_changes", "list_recommendations"])
def test_a_bad_time_names_the_argument(tools: Tools, name: str) -> None:
    """The tool has no option --since."""
    assert tools.error(name, since="2w").startswith("since 2w is not a time: ")


def test_no_match_says_which_filter_is_the_reason(tools: Tools) -> None:
    """It is an answer, not an error: nothing was wrong with the call."""
    answer = tools("spend_by", filters={"owner": "anna"})
    assert not answer.is_error
    assert answer.text.startswith("no audit of ")
    assert "owner anna matches nothing: did you mean ana?" in answer.text
    assert answer.document["rows"] == []


def usd_sum(rows: Iterable[dict[str, Any]], key: str) -> str:
    """Returns the sum of a key as text, with the floats of JSON as exact amounts."""
    return format_usd(sum((Decimal(str(row[key])) for row in rows), Decimal(0)))


def test_a_list_begins_with_the_sums_of_all_its_rows(tools: Tools, run: Run) -> None:
    """Also of those that are not shown. Possible savings are a sum of their own."""

    def ask(name: str, **arguments: Any) -> tuple[str, list[dict[str, Any]]]:
        answer = tools(name, limit=1, **arguments)
        printed = run(*shlex.split(answer.document["command"])[1:]).document()
        return answer.text.partition("\n1. ")[0], printed["rows"]

    top, jobs = ask("top_jobs")
    families, by_family = ask("spend_by")
    waste, spend = usd_sum(jobs, "waste_usd"), usd_sum(by_family, "total_usd")
    assert f"{spend} spent, {waste} avoidable or lost\nPossible savings, not included: " in top
    count = sum(row["jobs"] for row in by_family)
    assert f"all 13 rows: {count} jobs, {spend} spent, {waste} avoidable or lost" in families
    assert "\nPossible savings, not included: about $" in families
    usage_types, rows = ask("spend_by", columns="usage_type")
    assert usage_types.endswith(f"\nall {len(rows)} rows: {usd_sum(rows, 'total_usd')} spent")
    changes, rows = ask("spend_changes")
    before, spend = usd_sum(rows, "total_before_usd"), usd_sum(rows, "total_usd")
    change = usd_sum(rows, "total_change_usd")
    assert f"all {len(rows)} rows: " in changes
    assert f"{spend} spent, " in changes
    assert f"; before: {before} spent, change {change}" in changes
    recommended, rows = ask("list_recommendations")
    counted = usd_sum((row for row in rows if row["amount_kind"] == "counted"), "month")
    assert recommended.startswith(f"{len(rows)} open recommendations: {counted} in 30 days\n")
    assert "\nPossible savings, not included: maybe $" in recommended


def test_rows_of_rules_have_no_sum(tools: Tools) -> None:
    """A job is in several rows."""
    for answer in (tools("spend_by", columns="rule"), tools("spend_changes", column="rule")):
        assert "do not add up the spend" in answer.text
        assert "all 1" not in answer.text


def test_other_states_than_open_have_no_sum(tools: Tools) -> None:
    """What a followed recommendation saved is in `sageaudit savings`."""
    text = tools("list_recommendations", state="followed").text
    assert "in state followed" in text
    assert " in 30 days\n" not in text


@pytest.mark.parametrize(
    ("name", "words"), [("top_jobs", ("top",)), ("spend_by", ("by", "family"))]
)
def test_the_order_without_arguments_is_that_of_the_command(
    tools: Tools, run: Run, name: str, words: tuple[str, ...]
) -> None:
    """So the answer to the same question is the same."""
    printed = run(*words, "--history", tools.path, "--output", "json").document()["rows"]
    rows = tools(name, limit=10).document["rows"]
    assert rows == [without_words(row, rows[0]) for row in printed[:10]]


def test_the_check_of_a_request_names_the_tools_arguments(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first line has the findings. An option such as --region is none of the tool's."""
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    request = {
        "ProcessingJobName": "prepare",
        "ProcessingResources": {
            "ClusterConfig": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1}
        },
    }
    text = tools("check_request", request=request).text.partition("\nNote: ")[0]
    assert text.startswith("AWS refuses this request (")
    assert "the region is not known (give the region)" in text
    assert "account (give the argument account)" in text
    assert "--" not in text
    answer = tools("check_request", request=request, form="processing")
    assert "--as processing" in answer.document["command"]
    unknown = tools.error("check_request", request={"a": 1})
    assert unknown.endswith("(the argument form names the format)")
    assert "there is no form xml" in tools.error("check_request", request=request, form="xml")


def test_a_defect_ends_no_server_and_leaks_nothing(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The client gets the type of the error; the details are on stderr if asked for."""

    def fail() -> datetime:
        raise ValueError("secret")

    monkeypatch.setattr(clock, "utc_now", fail)
    text = tools.error("top_jobs")
    assert text == "top_jobs failed with ValueError, a bug in sageaudit: please report it"
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "secret" not in printed.err
    monkeypatch.setenv("SAGEAUDIT_DEBUG", "1")
    tools.error("top_jobs")
    assert "secret" in capsys.readouterr().err


def test_a_secret_in_an_argument_is_not_repeated(tools: Tools) -> None:
    """An error names what was asked, without tokens."""
    token = "xoxb-" + "1" * 12 + "-" + "a" * 24
    assert token not in tools.error("show_audit", job=token)


def test_without_the_sdk_the_command_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one sentence, with exit code 2. An older SDK has no package `mcp_types`."""
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    done = run("mcp")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "pip install 'mcp>=2'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_bad_policy_is_refused_at_the_start(run: Run, tmp_path: Path) -> None:
    """The client shows that the server did not start."""
    path = tmp_path / "policy.toml"
    path.write_text("[unknown]\n")
    done = run("mcp", "--policy", path)
    assert done.exit_code == 2
    assert "unknown" in done.stderr


def test_every_order_and_state_of_the_schemas_is_understood(tools: Tools) -> None:
    """They are those of the commands."""
    schemas = {tool.name: listed_tool(tool).input_schema["properties"] for tool in TOOLS.values()}
    for name in ("top_jobs", "spend_by"):
        for sort in schemas[name]["sort"]["enum"]:
            assert not tools(name, sort=sort, limit=1).is_error, sort
    states = {*schemas["list_recommendations"]["state"]["enum"]}
    assert states == {*State, "all"}
    assert schemas["spend_by"]["filters"]["properties"].keys() == FILTERS.keys()
