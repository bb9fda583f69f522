"""Reads one secret of Secrets Manager. Its value never appears in logs or error messages."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from botocore.exceptions import ClientError

from sageaudit.adapters.aws.clients import aws_errors, error_code
from sageaudit.errors import BadSettings, Throttled, Unavailable

PERMISSIONS = ("secretsmanager:GetSecretValue",)
TTL_S = 3_600
"""How long a secret is used before it is read again (our choice). AWS bills each read. If a
channel's service refuses the secret, it is read again at once."""

_UNUSABLE_REASONS = {
    "ResourceNotFoundException": "there is no such secret",
    "InvalidRequestException": "it is marked for deletion",
    "DecryptionFailure": "its key does not decrypt it",
    "KMSInvalidStateException": "its key is disabled",
}


class SecretReader:
    """A secret, by name or ARN. Its value is cached for `TTL_S`.

    `clock` returns monotonic seconds.
    """

    def __init__(self, client: Any, secret_id: str, clock: Callable[[], float]) -> None:
        self._client = client
        self._secret_id = secret_id
        self._clock = clock
        self._cached: tuple[float, str] | None = None

    def value(self, *, refresh: bool = False) -> str:
        """Returns the secret's text, from the cache unless it has expired or `refresh` is set.

        An expired text is still used if Secrets Manager does not answer. Raises BadSettings if the
        secret is missing or has no text; AwsError if AWS refuses.
        """
        now_s = self._clock()
        if refresh or self._cached is None:
            self._cached = (now_s, self._read())
        elif now_s - self._cached[0] >= TTL_S:
            with suppress(Throttled, Unavailable):
                self._cached = (now_s, self._read())
        return self._cached[1]

    def _read(self) -> str:
        with aws_errors("secretsmanager"):
            try:
                answer = self._client.get_secret_value(SecretId=self._secret_id)
            except ClientError as error:
                reason = _UNUSABLE_REASONS.get(error_code(error))
                if reason is None:
                    raise
                raise BadSettings(f"the secret {self._secret_id}: {reason}") from error
        text = str(answer.get("SecretString") or "").strip()
        if not text:
            raise BadSettings(f"the secret {self._secret_id}: it has no text")
        return text
