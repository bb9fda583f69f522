"""The Price List API without permission to call it, so that the packaged prices are used."""

from __future__ import annotations

from typing import Any

from botocore.awsrequest import AWSResponse

from local import ACCOUNT

_WHO = f"arn:aws:sts::{ACCOUNT}:assumed-role/audit/audit"


def refuse_prices(session: Any) -> None:
    """Answers GetProducts with "not permitted", in place of the HTTP request."""
    session.events.register("before-call.pricing.GetProducts", _refused)


def _refused(**_: Any) -> tuple[AWSResponse, dict[str, Any]]:
    said = f"User: {_WHO} is not authorized to perform: pricing:GetProducts"
    error = {"Code": "AccessDeniedException", "Message": said}
    answer = AWSResponse("https://api.pricing.us-east-1.amazonaws.com", 400, {}, None)
    return answer, {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}
