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
    """Implements ReportStore. `client` is boto3's S3 client; `account` owns the bucket.

    `key_arn` is the KMS key that encrypts the reports; None for S3's own key.
    """

    client: Any
    bucket: str
    account: str
    key_arn: str | None = None

    def put(self, name: str, page: str) -> str:
        """Stores a page, and returns its address in the AWS console.

        Raises AwsError, also if the bucket belongs to another account, which may have taken the
        name.
        """
        key = f"{PREFIX}{name}"
        encryption = {"ServerSideEncryption": "AES256"}
        if self.key_arn is not None:
            encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": self.key_arn}
        with aws_errors("s3"):
            self.client.put_object(
                Bucket=self.bucket,
                Key=key,
                Body=page.encode("utf-8", "replace"),
                ContentType="text/html; charset=utf-8",
                ExpectedBucketOwner=self.account,
                **encryption,
            )
        meta = self.client.meta
        return object_url(meta.partition, meta.region_name, self.bucket, key)
