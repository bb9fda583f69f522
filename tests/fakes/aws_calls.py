"""Records every boto3 request and answers chosen ones."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto.iam.models import get_account_id_from
from msgspec import Struct

Answer = Callable[[str, Mapping[str, Any]], "Mapping[str, Any] | None"]
"""Takes account and parameters, returns an answer; None leaves the call to moto."""


class Call(Struct, frozen=True):
    """One call, and the account whose credentials signed it."""

    account: str
    service: str
    operation: str
    params: Mapping[str, Any]

    @property
    def name(self) -> str:
        """For example `sagemaker:ListTrainingJobs`."""
        return f"{self.service}:{self.operation}"


@dataclass
class AwsCalls:
    """The calls so far, and the answers that replace moto's."""

    log: list[Call] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)

    def answer(self, name: str, answer: Answer) -> None:
        """Sets the function that answers a call such as `ce:GetCostAndUsage`."""
        self.answers[name] = answer

    def refuse(
        self, name: str, code: str, *accounts: str, when: Callable[[Any], bool] = lambda _: True
    ) -> None:
        """Lets a call fail with an error code, in these accounts or in all."""

        def refused(account: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
            if (accounts and account not in accounts) or not when(params):
                return None
            raise ClientError(
                {"Error": {"Code": code, "Message": "refused"}, "ResponseMetadata": {}},
                name.partition(":")[2],
            )

        self.answers[name] = refused

    def by_name(self, name: str) -> list[Call]:
        """Returns the calls with this name."""
        return [call for call in self.log if call.name == name]

    @property
    def names(self) -> set[str]:
        """The names of all calls so far."""
        return {call.name for call in self.log}


@contextmanager
def aws_calls() -> Iterator[AwsCalls]:
    """Records the calls of all clients in this block."""
    calls, original = AwsCalls(), BaseClient._make_api_call

    def call(client: Any, operation: str, params: Mapping[str, Any]) -> Any:
        key = client._request_signer._credentials
        account = "" if key is None else get_account_id_from(key.access_key)
        service = client.meta.service_model.service_name
        request = Call(account, service, operation, dict(params))
        calls.log.append(request)
        answer = calls.answers.get(request.name)
        replaced = None if answer is None else answer(account, params)
        return original(client, operation, params) if replaced is None else replaced

    with mock.patch.object(BaseClient, "_make_api_call", call):
        yield calls
