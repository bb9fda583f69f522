"""boto3 sessions whose SageMaker calls are answered, and noted, before they are sent."""

from types import SimpleNamespace
from typing import Any

import boto3
import botocore.session
from botocore.loaders import Loader

from tests.fakes.planned import body

DAY = {"StoppingCondition.MaxRuntimeInSeconds": 86400}
"""A change of the training request, which then costs at most $5.66, and not $0.24 in an hour."""
_SHARED = Loader()


class Aws:
    """Makes sessions. `sent` has the name of each SageMaker call that would have been sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def session(self, region: str = "us-east-1") -> Any:
        """Returns a session. Its loader is its own, although tests share one (conftest)."""
        own = botocore.session.Session()
        loader = Loader()
        loader._cache = _SHARED._cache
        own.register_component("data_loader", loader)
        session = boto3.Session(botocore_session=own, region_name=region)
        session.events.register("before-call.sagemaker", self._answer)
        return session

    def client(self, region: str = "us-east-1") -> Any:
        """Returns a SageMaker client of a session of its own."""
        return self.session(region).client("sagemaker")

    def _answer(self, model: Any, **_: Any) -> tuple[Any, dict[str, Any]]:
        self.sent.append(model.name)
        return SimpleNamespace(status_code=200), {}


def train(client: Any, changes: dict[str, Any] | None = None) -> None:
    """Starts a training job, by default on one ml.m5.xlarge for at most an hour, for $0.24."""
    client.create_training_job(**body(changes=changes))
