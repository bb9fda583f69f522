"""The DynamoDB that `make dynamodb` names: the tests of the history run there, not against moto.

DYNAMODB is an endpoint, or `aws`: the account and region of the caller's own credentials, which
this module keeps before the tests' made-up ones replace them.
"""

import os
from typing import Any
from unittest.mock import patch

import boto3
from botocore.config import Config

NAMED = os.environ.get("DYNAMODB", "")
IS_ACCOUNT = NAMED == "aws"
_OWN = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}


def client() -> Any:
    """A client of it. That of an account has found its credentials when this returns."""
    if not IS_ACCOUNT:
        config = Config(account_id_endpoint_mode="disabled")
        return boto3.client("dynamodb", endpoint_url=NAMED, config=config)
    made_up = [name for name in os.environ if name.startswith("AWS_")]
    with patch.dict(os.environ):
        for name in made_up:
            del os.environ[name]
        os.environ |= _OWN
        session = boto3.Session()
        session.get_credentials()
        return session.client("dynamodb")
