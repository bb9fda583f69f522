"""Each function under AWS's own runtime client, with nothing on its path but the asset.

A small Runtime API gives it events. AWS is a closed port, so each function has to say what it could
not do, in the form that its caller reads.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from infra.bundling import FUNCTIONS, THIS_MACHINE, build_asset
from sageaudit.adapters.files import policy_file
from tests.fakes.deliver_function import notice_body
from tests.fakes.lambda_events import batch, sqs_record, stream_record
from tests.infra.reading import of_type, read

ROOT = FUNCTIONS.parent
EVENT = ROOT / "tests" / "recorded" / "data" / "events" / "training-completed.json"
CLIENT = ("awslambdaric", "runtime_client*.so", "simplejson", "snapshot_restore_py.py")
START = """
import sys
client, asset, handler = sys.argv[1:]
sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry] + [client, asset]
from awslambdaric.__main__ import main
main(["awslambdaric", handler])
"""
NO_AWS = "http://127.0.0.1:9"
AGAIN = {"batchItemFailures": [{"itemIdentifier": "m1"}]}
BROKEN_MESSAGE = batch(sqs_record("{"))
CASES: dict[str, tuple[list[Any], list[Any]]] = {
    # the broken ones come again too: there is no queue for dead letters to be had
    "audit": ([batch(sqs_record(EVENT.read_text("utf-8"))), BROKEN_MESSAGE], [AGAIN, AGAIN]),
    "deliver": ([batch(sqs_record(notice_body("sns"))), BROKEN_MESSAGE], [AGAIN, AGAIN]),
    "notify": (
        [batch(stream_record("{}", number=7)), batch({"eventName": "INSERT", "dynamodb": {}})],
        [
            {"batchItemFailures": [{"itemIdentifier": "7"}]},
            {"batchItemFailures": [{"itemIdentifier": ""}]},
        ],
    ),
    "sweep": ([{"source": "aws.scheduler"}, ["no object"]], [{"failed": 1}, "AttributeError"]),
    "digest": ([{"source": "aws.scheduler"}, None], ["Unavailable", "Unavailable"]),
}
"""Of each function: events, and for each its answer, or the type of the error that it reports."""
pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(sys.platform != "linux", reason="awslambdaric has wheels for Linux only"),
]


@dataclass
class RuntimeApi:
    """Lambda's side: `answers` are those of the events, in order."""

    events: Sequence[Any]
    answers: Queue[Any] = field(default_factory=Queue)
    address: str = ""
    given: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def next(self) -> bytes | None:
        """The next event; after the last one, None once the test is over."""
        if self.given == len(self.events):
            self.over.wait()
            return None
        self.given += 1
        return json.dumps(self.events[self.given - 1]).encode()


@contextmanager
def runtime_api(events: Sequence[Any]) -> Iterator[RuntimeApi]:
    """A Runtime API with these events, at a loopback address."""
    api = RuntimeApi(events)

    class Requests(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if (event := api.next()) is not None:
                self._answer(200, event)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            api.answers.put((self.path.rpartition("/")[2], body))
            self._answer(202, b"{}")

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Lambda-Runtime-Aws-Request-Id", f"request-{api.given}")
            self.send_header("Content-Type", "application/json")
            self.send_header("Lambda-Runtime-Trace-Id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700")
            self.send_header("Lambda-Runtime-Deadline-Ms", "4000000000000")
            self.send_header(
                "Lambda-Runtime-Invoked-Function-Arn",
                "arn:aws:lambda:us-east-1:111122223333:function:sageaudit",
            )
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    server.daemon_threads = True
    api.address = f"127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield api
    finally:
        api.over.set()
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with awslambdaric and what it imports, and nothing else of its environment."""
    installed = next((ROOT / ".venv-release" / "lib").glob("python*/site-packages"), None)
    assert installed is not None, "make it first: make .venv-release/.ready"
    folder = tmp_path_factory.mktemp("awslambdaric")
    for pattern in CLIENT:
        [found] = installed.glob(pattern)
        (folder / found.name).symlink_to(found)
    return folder


def environment(of_template: dict[str, Any], asset: Path, api: RuntimeApi) -> dict[str, str]:
    """What Lambda sets, and the variables of the template with values for its references."""
    variables = of_template["Environment"]["Variables"]
    known = {"AWS::AccountId": "111122223333", "AWS::StackName": "SageAudit"}
    known |= dict.fromkeys(
        (value["Ref"] for name, value in variables.items() if name == "TOPIC_ARN"),
        "arn:aws:sns:us-east-1:111122223333:notices",
    )
    queue = f"{NO_AWS}/111122223333/queue"
    return {
        name: value if isinstance(value, str) else known.get(value.get("Ref"), queue)
        for name, value in variables.items()
    } | {
        "PATH": os.defpath,
        "AWS_LAMBDA_RUNTIME_API": api.address,
        "AWS_LAMBDA_FUNCTION_NAME": "sageaudit",
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(of_template["MemorySize"]),
        "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/sageaudit",
        "AWS_LAMBDA_LOG_STREAM_NAME": "1",
        "LAMBDA_TASK_ROOT": str(asset),
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_ENDPOINT_URL": NO_AWS,
    }


@pytest.mark.parametrize("name", CASES)
def test_it_answers_events_in_the_form_that_lambda_reads(
    name: str, client: Path, templates: Path
) -> None:
    """The handler is found by its name in the template; a broken event is an answer too."""
    asset = build_asset(THIS_MACHINE, policy_file.load_policy(ROOT / "policy.toml")).folder
    functions = of_type(read(templates, "deployed.json"), "AWS::Lambda::Function")
    [function] = [
        function for function in functions.values() if function["Handler"].startswith(f"{name}.")
    ]
    events, expected = CASES[name]
    with runtime_api(events) as api:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", START, client, asset, function["Handler"]],
            env=environment(function, asset, api),
            cwd=asset,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            for answer in expected:
                kind, body = api.answers.get(timeout=60)
                if isinstance(answer, str):
                    assert (kind, body["errorType"]) == ("error", answer), body
                    assert body.keys() == {"errorMessage", "errorType", "requestId", "stackTrace"}
                else:
                    assert (kind, body) == ("response", answer)
        finally:
            process.kill()
            process.wait()
