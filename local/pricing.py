"""Denies the Price List API, so that the packaged prices are used."""

from __future__ import annotations

from typing import Any

from botocore.awsrequest import AWSResponse

from local import ACCOUNT
from local.requests import RequestRouter, http_answer

_URL = "https://api.pricing.us-east-1.amazonaws.com"
_CALLER_ARN = f"arn:aws:sts::{ACCOUNT}:assumed-role/audit/audit"


def refuse_prices(requests: RequestRouter) -> None:
    """Answers GetProducts with AccessDenied."""
    requests.register_answer("before-send.pricing.GetProducts", _access_denied_answer)


def _access_denied_answer(**_: Any) -> AWSResponse:
    message = f"User: {_CALLER_ARN} is not authorized to perform: pricing:GetProducts"
    return http_answer(_URL, 400, {"__type": "AccessDeniedException", "message": message})
