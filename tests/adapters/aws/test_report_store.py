"""A report in a bucket: private, under one prefix, and where its reader finds it."""

import boto3
from moto import mock_aws

from sageaudit.adapters.aws.report_store import S3ReportStore
from sageaudit.output.text.links import object_url


def test_a_report_is_stored_encrypted_and_its_console_page_is_returned() -> None:
    """The address in the digest is opened by people who may read the bucket."""
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="reports")
        url = S3ReportStore(client, "reports", "123456789012").put("2026/week-21.html", "<p>é</p>")
        stored = client.get_object(Bucket="reports", Key="sageaudit/2026/week-21.html")
    assert stored["Body"].read().decode() == "<p>é</p>"
    assert stored["ServerSideEncryption"] == "AES256"
    assert stored["ContentType"] == "text/html; charset=utf-8"
    assert "SSEKMSKeyId" not in stored
    assert url == (
        "https://us-east-1.console.aws.amazon.com/s3/object/reports"
        "?region=us-east-1&prefix=sageaudit%2F2026%2Fweek-21.html"
    )


def test_a_report_in_a_partition_without_a_known_console_has_its_s3_address() -> None:
    """A link to another partition's console would be wrong."""
    url = object_url("aws-iso", "us-iso-east-1", "reports", "sageaudit/2026-05-20.html")
    assert url == "s3://reports/sageaudit/2026-05-20.html"


def test_a_report_is_encrypted_with_the_key_of_the_deployment() -> None:
    """Whatever the bucket's default is."""
    key = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="reports")
        S3ReportStore(client, "reports", "123456789012", key).put("week.html", "<p></p>")
        stored = client.get_object(Bucket="reports", Key="sageaudit/week.html")
    assert (stored["ServerSideEncryption"], stored["SSEKMSKeyId"]) == ("aws:kms", key)
