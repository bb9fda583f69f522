"""The SageMaker SDKs run unchanged, with an AWS of this machine: `make sdks`."""

import os
import tempfile
from collections.abc import Iterator
from threading import Thread

import pytest

from tests.sdks.local_aws import LocalAws


def pytest_configure() -> None:
    """Sets the region, credentials and settings before an SDK is imported."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "HOME": tempfile.mkdtemp(prefix="sageaudit-sdks-"),
        # what the SDKs report about their use ends at a proxy that does not exist
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1",
    }


@pytest.fixture(scope="session")
def server() -> Iterator[LocalAws]:
    """Yields the local AWS, to which every client of the process connects."""
    with LocalAws() as server:
        os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def calls(server: LocalAws) -> list[str]:
    """Returns the names of the SageMaker calls that are sent from now on."""
    server.calls.clear()
    return server.calls
