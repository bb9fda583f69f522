"""Measures how much CPU each Lambda function takes until it is ready for its first record.

A sample is a process that imports the handler from the asset, and is then ready: clients are
created while the handler is imported. It needs Python 3.13 on the path. The asset's wheels are
those of this machine's processor.

The peers are processes that only import boto3 and create one client for each service of which the
function has a client at its start: once with the wheels as pip installs them, compiled like the
asset, and once with the shortened wheels of the asset. All processes have Python's own settings, so
the garbage collector runs in each. Compare quotients of neighbouring samples, because machines
differ. Repeat with `make bench PART=starts`.
"""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from platform import machine

from infra import bundling, byte_code
from infra.runtimes import PINNED_PYTHON

FUNCTIONS = ("audit", "notify", "deliver", "digest", "sweep", "watch")
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
folder, names = sys.argv[1], sys.argv[2:]
sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry] + [folder]
"""
_READY = f"""{_ALONE}
from importlib import import_module
import_module(names[0] + ".handler")
"""
_FLOOR = f"""{_ALONE}
import boto3
session = boto3.Session()
for name in names:
    session.client(name)
"""
_CLIENTS = f"""{_ALONE}
from importlib import import_module
import botocore.session
services, create_client = [], botocore.session.Session.create_client
def create_and_note(session, service_name, *arguments, **options):
    services.append(service_name)
    return create_client(session, service_name, *arguments, **options)
botocore.session.Session.create_client = create_and_note
import_module(names[0] + ".handler")
print(*dict.fromkeys(services))
"""


def _run(program: str, folder: Path, *names: str) -> str:
    """Returns the output of a process that has only the folder, and writes no byte code."""
    return subprocess.run(
        [_interpreter().path, "-I", "-S", "-B", "-c", program, str(folder), *names],
        check=True,
        capture_output=True,
        text=True,
        env=ENVIRONMENT | {"POWERTOOLS_SERVICE_NAME": names[0], "LAMBDA_TASK_ROOT": str(folder)},
    ).stdout


@cache
def _interpreter() -> byte_code.Interpreter:
    interpreter = byte_code.find_interpreter(PINNED_PYTHON)
    if interpreter is None:
        raise SystemExit(byte_code.no_interpreter_warning(PINNED_PYTHON))
    return interpreter


def _bench_folder() -> Path:
    """Returns the folder of this version's builds: others must not delete them."""
    default = Path(tempfile.gettempdir(), "sageaudit-bench")
    version = hashlib.sha256(str(bundling.ROOT).encode()).hexdigest()[:8]
    folder = Path(os.environ.get("BENCH_FOLDER", default), f"starts-{version}")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _target() -> bundling.Target:
    return bundling.Target("bench", platform=f"manylinux2014_{machine()}", python=PINNED_PYTHON)


@cache
def asset() -> Path:
    """Builds the asset for this machine's processor."""
    bundling.BUILD_FOLDER = _bench_folder()
    return bundling.build_asset(_target(), bundling.load_policy(bundling.POLICY)).folder


@cache
def _whole_wheels() -> Path:
    """Returns the wheels as pip installs them, compiled."""
    pins = hashlib.sha256(bundling.REQUIREMENTS.read_bytes()).hexdigest()[:8]
    folder = _bench_folder() / f"whole-wheels-{pins}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            new_folder = Path(temporary, "new")
            bundling._install(new_folder, _target().pip_options())  # noqa: SLF001 - the asset's own
            byte_code.compile_folder(new_folder, _interpreter())
            new_folder.rename(folder)
    return folder


@cache
def _services(function: str) -> tuple[str, ...]:
    """Returns the services of the clients that a function creates at its start."""
    return tuple(_run(_CLIENTS, asset(), function).split())


def _cpu_ms(program: str, folder: Path, *names: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(program, folder, *names)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def ready_ms(function: str) -> float:
    """Returns the CPU time of a function's start."""
    return _cpu_ms(_READY, asset(), function)


def floor_ms(function: str) -> float:
    """Returns the CPU time of boto3 with the function's clients, from whole wheels."""
    return _cpu_ms(_FLOOR, _whole_wheels(), *_services(function))


def short_floor_ms(function: str) -> float:
    """Returns the same from the wheels of the asset."""
    return _cpu_ms(_FLOOR, asset(), *_services(function))


def _asset_mb() -> float:
    return sum(path.stat().st_size for path in asset().rglob("*") if path.is_file()) / 1e6


MEASURED: Mapping[str, tuple[str, Callable[[], float]]] = {
    "asset, all files": ("MB", _asset_mb),
    **{f"{name} ready": ("CPU ms", partial(ready_ms, name)) for name in FUNCTIONS},
    **{
        f"peer: boto3 with the clients of {name}": ("CPU ms", partial(floor_ms, name))
        for name in FUNCTIONS
    },
    **{
        f"peer: the asset's boto3 with the clients of {name}": (
            "CPU ms",
            partial(short_floor_ms, name),
        )
        for name in FUNCTIONS
    },
}
