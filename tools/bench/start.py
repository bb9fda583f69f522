"""Measures how much CPU each Lambda function takes until it is ready for its first record.

`.venv/bin/python -m tools.bench start` needs Python 3.13 on this machine. The floor of a
function is a process that only creates the same boto3 clients, from the same asset, whose wheels
are those of this machine's processor.

Function and floor run alternately, and each figure is the median of several processes. Compare the
quotient, because machines differ.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from platform import machine

from infra import byte_code
from infra.bundling import POLICY, Target, build_asset, load_policy
from infra.runtimes import PINNED_PYTHON
from tools.bench.measure import Row, measure_alternately

RUNS = 9
_QUEUE = "https://sqs.us-east-1.amazonaws.com/111122223333/queue"
_QUEUES = ("FINISHED_DLQ", "FINISHED_QUEUE", "NOTICES_DLQ", "DECISIONS_QUEUE", "UNDECIDED_QUEUE")
ENVIRONMENT = {f"{name}_URL": _QUEUE for name in _QUEUES} | {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
    "ACCOUNT_ID": "111122223333",
    "CHANNELS": "sns,slack",
    "NOTICES_QUEUE_URL_SLACK": _QUEUE,
    "NOTICES_QUEUE_URL_SNS": _QUEUE,
    "SLACK_SECRET_ID": "sageaudit/slack-webhook",
    "TABLE_NAME": "history",
    "TOPIC_ARN": "arn:aws:sns:us-east-1:111122223333:notices",
    "POWERTOOLS_LOG_LEVEL": "INFO",
    "PATH": os.defpath,
}
"""The variables that the functions read. There is no fingerprint key."""
_ALONE = """
import sys
asset, names = sys.argv[1], sys.argv[2:]
sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry] + [asset]
"""
READY = f"""{_ALONE}
from importlib import import_module
import_module(names[0] + ".handler")
"""
FLOOR = f"""{_ALONE}
import boto3
session = boto3.Session()
for name in names:
    session.client(name)
"""
_CLIENTS = f"""{_ALONE}
import boto3
made, client = [], boto3.Session.client
def noted(session, service, **more):
    made.append(service)
    return client(session, service, **more)
boto3.Session.client = noted
from importlib import import_module
import_module(names[0] + ".handler")
print(*made)
"""


def run(python: str, program: str, asset: Path, *names: str) -> str:
    """Returns the output of a process that has only the asset, and writes no byte code."""
    return subprocess.run(
        [python, "-I", "-S", "-B", "-c", program, str(asset), *names],
        check=True,
        capture_output=True,
        text=True,
        env=ENVIRONMENT | {"POWERTOOLS_SERVICE_NAME": names[0], "LAMBDA_TASK_ROOT": str(asset)},
    ).stdout


def clients(python: str, asset: Path, name: str) -> list[str]:
    """Returns the services of the clients that a function creates at its start, in order."""
    return run(python, _CLIENTS, asset, name).split()


def rows() -> Iterator[Row]:
    """Yields the size of the asset, then the start of each function beside its floor."""
    interpreter = byte_code.find_interpreter(PINNED_PYTHON)
    if interpreter is None:
        raise SystemExit(byte_code.no_interpreter_warning(PINNED_PYTHON))
    target = Target("bench", platform=f"manylinux2014_{machine()}", python=PINNED_PYTHON)
    asset = build_asset(target, load_policy(POLICY)).folder
    size = sum(path.stat().st_size for path in asset.rglob("*") if path.is_file())
    yield Row("asset, all files", size / 1e6, "MB", goal="at most 20 MB")
    for handler in sorted(asset.glob("*/handler.py")):
        name = handler.parent.name
        services = clients(interpreter.path, asset, name)
        ready = partial(run, interpreter.path, READY, asset, name)
        function_s, floor_s = measure_alternately(
            RUNS, ready, partial(run, interpreter.path, FLOOR, asset, *services)
        )
        yield Row(
            f"{name} ready",
            function_s,
            "CPU s",
            "boto3 with its clients",
            floor_s,
            "at most 1.1 times",
        )
