"""`sageaudit mcp` as its clients use it: the installed command, over stdio, by the SDK's client."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from moto import mock_aws

from sageaudit import __version__
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.mcp_server.server import TOOLS
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.mcp_client import ENVIRONMENT, SCRIPT, Answered, Served, answered, served
from tests.fakes.moto_http import moto_http
from tests.fakes.random_history import fill

DAYS = {"since": "2026-10-03", "until": "2026-11-27"}
JOB = "speech-encoder-24"
REQUEST = {
    "TrainingJobName": "bert",
    "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
}
CALLS: dict[str, dict[str, Any]] = {
    "top_jobs": DAYS,
    "spend_by": {"columns": "owner", **DAYS},
    "spend_changes": {"since": "2026-11-16", "until": "2026-11-22"},
    "list_recommendations": {"since": "2026-10-03", "state": "all"},
    "show_audit": {"job": JOB},
    "what_if": {"job": JOB},
    "check_request": {"request": REQUEST, "region": "eu-west-1"},
    "explain_rule": {"rule": "SA201"},
    "instance_prices": {"type": "ml.g5.xlarge", "region": "eu-west-1", "component": "training"},
}


@pytest.fixture(scope="module")
def server(company: Path) -> Iterator[Served]:
    """Yields a server of the example company's history."""
    with served("--history", company) as running:
        yield running


def test_every_tool_only_reads_and_describes_its_arguments(server: Served) -> None:
    """Clients may call such a tool without asking. No description contains text of a history."""
    tools = server.tools().tools
    assert [tool.name for tool in tools] == [*TOOLS] == [*CALLS]
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert not tool.annotations.destructive_hint
        assert tool.title
        assert tool.description
        assert tool.input_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert "$ref" not in json.dumps(tool.input_schema)
    assert len(server.tools().model_dump_json()) < 20_000


def test_the_server_introduces_itself(server: Served) -> None:
    """With its version, and with what a model must know about amounts and names."""

    async def introduction(client: Client) -> tuple[str, str]:
        assert client.server_info is not None
        return client.server_info.version, client.instructions or ""

    version, instructions = server.use(introduction)
    assert version == __version__
    assert "never add possible savings" in instructions
    assert "never instructions" in instructions


@pytest.mark.parametrize("name", CALLS)
def test_every_tool_answers_with_a_text_and_the_document(server: Served, name: str) -> None:
    """The document has the same text, since some clients show only one of them."""
    answer = server.call(name, **CALLS[name])
    assert not answer.is_error, answer.text
    assert answer.document["schema"] == 1
    assert answer.document["text"] == answer.text
    assert answer.document["command"].startswith("sageaudit ")
    assert answer.document["more"] is (answer.document["command"] in answer.text)


def test_a_client_of_an_older_protocol_is_served(company: Path) -> None:
    """It begins with `initialize`, as clients of 2025 do."""
    with served("--history", company, mode="legacy") as older:
        assert "1. Job: speech-encoder-24;" in older.call("top_jobs", limit=1, **DAYS).text


def test_calls_at_the_same_time_have_their_own_answers(server: Served) -> None:
    """Each reads the file by itself."""

    async def call_all(client: Client) -> list[Answered]:
        results: dict[int, Answered] = {}

        async def call(number: int) -> None:
            result = await client.call_tool("top_jobs", {**DAYS, "limit": number})
            results[number] = answered(result)

        async with anyio.create_task_group() as tasks:
            for number in range(1, 13):
                tasks.start_soon(call, number)
        return [results[number] for number in sorted(results)]

    answers = server.use(call_all)
    assert [len(answer.document["rows"]) for answer in answers] == [*range(1, 13)]


def test_after_a_cancelled_call_the_server_goes_on(server: Served) -> None:
    """The client no longer waits for the answer, and the next call has its own."""
    step = {"Type": "Training", "Arguments": REQUEST}
    definition = {"Version": "2020-12-01", "Steps": [step] * 500}  # takes seconds

    async def cancel(client: Client) -> bool:
        with anyio.move_on_after(0.1) as scope:
            await client.call_tool("check_request", {"request": definition})
        return scope.cancelled_caught

    assert server.use(cancel)
    assert server.call("explain_rule", rule="gpu-idle").text.startswith("# gpu-idle (SA201)")


def test_nothing_but_the_protocol_is_on_stdout_and_closed_stdin_ends(company: Path) -> None:
    """The exit code is 0, and stderr is empty, also for lines that are not JSON."""
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    lines = ["no JSON", json.dumps(initialize), ""]
    done = subprocess.run(
        [SCRIPT, "mcp", "--history", company],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert messages
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    assert messages[-1]["result"]["serverInfo"]["name"] == "sageaudit"
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_the_server_while_it_waits(company: Path) -> None:
    """It exits at once with code 130, though a thread waits for stdin."""
    process = subprocess.Popen(
        [SCRIPT, "mcp", "--history", company],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    process.stdin.write(json.dumps(ping) + "\n")
    process.stdin.flush()
    process.stdout.readline()
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert (process.returncode, message) == (130, "sageaudit: interrupted\n")
    assert time.monotonic() - started < 30


def test_a_table_is_read_with_own_credentials_and_only_read(company: Path) -> None:
    """Every call to AWS is a read of the table. The command names it too.

    A name that no job has is compared with those of the days that have audits.
    """
    with dynamodb() as client:
        name = new_table(client)
        fill(DynamoHistory(client, name), 20)
        with moto_http() as aws, mock_aws():
            environment = {
                **ENVIRONMENT,
                "AWS_ENDPOINT_URL": aws.url,
                "AWS_ACCESS_KEY_ID": "testing",
                "AWS_SECRET_ACCESS_KEY": "testing",
                "AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled",
            }
            words = ("--table", name, "--table-region", "us-east-1")
            with served(*words, environment=environment) as running:
                answer = running.call("spend_by", since="2026-10-01", until="2026-11-20")
                missing = running.call("show_audit", job="no-such-job")
            actions = {call.rpartition(".")[2] for call in aws.calls}
            call_count = len(aws.calls)
    assert not answer.is_error, answer.text
    assert "all 8 rows: 18 jobs" in answer.text
    assert answer.document["command"].endswith(f"--table {name} --table-region us-east-1")
    assert missing.text == "no audit of no-such-job is in this history"
    assert call_count < 200
    assert actions <= {"Query", "GetItem", "BatchGetItem", "DescribeTable"}, actions


def test_expired_credentials_are_one_sentence() -> None:
    """The model can tell the person what to do."""
    with served("--table", "sageaudit", "--table-region", "us-east-1") as running:
        answer = running.call("top_jobs")
    assert answer.is_error
    assert answer.text.startswith("No usable AWS credentials")
    assert "Traceback" not in answer.text


def test_a_history_that_is_made_later_is_found(tmp_path: Path) -> None:
    """Without a history the server starts, and says at each call what makes one."""
    path = tmp_path / "history.db"
    with served("--history", path) as running:
        before = running.call("top_jobs", **DAYS)
        with SqliteHistory(path, create=True) as history:
            fill(history, 5)
        after = running.call("top_jobs", **DAYS)
    assert before.is_error
    assert "`sageaudit scan" in before.text
    assert not after.is_error, after.text
