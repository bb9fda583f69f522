"""One secret of Secrets Manager, read when it is needed. Its value is in no log and no error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from sageaudit.adapters.aws.clients import aws_errors, code_of
from sageaudit.errors import BadSettings

PERMISSIONS = ("secretsmanager:GetSecretValue",)

_NOT_THERE = {
    "ResourceNotFoundException": "there is no such secret",
    "InvalidRequestException": "it is marked for deletion",
    "DecryptionFailure": "its key does not decrypt it",
}


class SecretReader:
    """A secret by name or ARN, kept for `ttl_s`. `clock` counts seconds, such as time.monotonic."""

    def __init__(
        self, client: Any, secret_id: str, clock: Callable[[], float], *, ttl_s: float = 300
    ) -> None:
        self._client = client
        self._secret_id = secret_id
        self._clock = clock
        self._ttl_s = ttl_s
        self._kept: tuple[float, str] | None = None

    def value(self, *, refresh: bool = False) -> str:
        """The secret's text, read anew when asked to or when the kept one is old.

        Raises BadSettings where there is no text, or what AWS refused as an AwsError.
        """
        now_s = self._clock()
        if self._kept is None or refresh or now_s - self._kept[0] >= self._ttl_s:
            self._kept = (now_s, self._read())
        return self._kept[1]

    def _read(self) -> str:
        with aws_errors("secretsmanager"):
            try:
                answer = self._client.get_secret_value(SecretId=self._secret_id)
            except ClientError as error:
                reason = _NOT_THERE.get(code_of(error))
                if reason is None:
                    raise
                raise BadSettings(f"the secret {self._secret_id}: {reason}") from error
        text = str(answer.get("SecretString") or "").strip()
        if not text:
            raise BadSettings(f"the secret {self._secret_id}: it holds no text")
        return text
