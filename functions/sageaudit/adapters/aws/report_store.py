"""Stores reports in an S3 bucket of this account, encrypted and private."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from sageaudit.adapters.aws.clients import aws_errors
from sageaudit.output.text.links import object_url

PREFIX = "sageaudit/"
PERMISSIONS = ("s3:PutObject",)
"""Needed only on objects under PREFIX."""


class S3ReportStore(Struct, frozen=True):
    """Implements ReportStore. `client` is boto3's S3 client; `account` owns the bucket."""

    client: Any
    bucket: str
    account: str

    def put(self, name: str, page: str) -> str:
        """Stores a page, and returns its address in the AWS console.

        Raises AwsError, also if the bucket belongs to another account, which may have taken the
        name.
        """
        key = f"{PREFIX}{name}"
        with aws_errors("s3"):
            self.client.put_object(
                Bucket=self.bucket,
                Key=key,
                Body=page.encode("utf-8", "replace"),
                ContentType="text/html; charset=utf-8",
                ServerSideEncryption="AES256",
                ExpectedBucketOwner=self.account,
            )
        meta = self.client.meta
        return object_url(meta.partition, meta.region_name, self.bucket, key)
