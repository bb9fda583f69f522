"""`sageaudit scan` as a separate process against moto over HTTP."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.fakes.moto_http import MotoHttp, moto_http
from tests.fakes.moto_jobs import add_training_job

ROOT = Path(__file__).parents[2]
MAIN = "from sageaudit.cli.main import main; main()"


@dataclass
class User:
    """A person with jobs in AWS, a terminal, and a data folder."""

    session: Any
    aws: MotoHttp
    home: Path

    def start(self, *words: str) -> subprocess.Popen[str]:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, *words],
            cwd=ROOT,
            env={
                **environ,
                "PYTHONPATH": str(ROOT / "functions"),
                "AWS_ENDPOINT_URL": self.aws.url,
                "AWS_ACCESS_KEY_ID": "testing",
                "AWS_SECRET_ACCESS_KEY": "testing",
                "AWS_DEFAULT_REGION": "eu-west-1",
                "XDG_DATA_HOME": str(self.home),
                "COLUMNS": "80",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def scan(self, *words: str) -> tuple[int, str, str]:
        process = self.start("scan", *words)
        printed, message = process.communicate(timeout=300)
        return process.returncode, printed, message


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    """Yields a user with six jobs."""
    with mock_aws(), moto_http() as aws:
        session = boto3.Session(region_name="eu-west-1")
        for number in range(6):
            add_training_job(session, f"bert-{number}", days_ago=6 - number, minutes=30)
        yield User(session, aws, tmp_path)


def test_a_killed_process_loses_no_recorded_audit(user: User) -> None:
    """Each audit is in the file as soon as it is made."""
    user.aws.slow_s = 0.4
    process = user.start("scan")
    while sum("Describe" in call for call in user.aws.calls) < 6:
        time.sleep(0.05)
    time.sleep(1)
    process.kill()
    process.communicate(timeout=300)
    user.aws.slow_s = 0
    code, printed, _ = user.scan("--output", "json")
    result = json.loads(printed)["scan"]["jobs"]
    assert (code, result["known"] + result["audited"]) == (0, 6)
