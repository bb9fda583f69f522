"""Client of the DynamoDB that `make dynamodb` names, for the history's tests instead of moto.

The variable DYNAMODB is an endpoint, or `aws`: the account and region of the user's own
credentials. This module saves them before the tests' made-up ones replace them.
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
    """Returns a client; for an account, its credentials are already resolved."""
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
