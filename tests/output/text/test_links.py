from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given

from sageaudit.output.text.links import document_links
from tests.fakes.documents import document, job
from tests.fakes.hostile import texts


def urls(**overrides: Any) -> dict[str, str]:
    """Returns the links of a job by their label."""
    return {link.label: link.url for link in document_links(document(job=job(**overrides)))}


def test_training_links() -> None:
    """They show the job's page, its first hosts' metrics around the run, and its log streams."""
    links = urls(name="bert-1")
    console = "https://us-east-1.console.aws.amazon.com"
    assert links["Job"] == f"{console}/sagemaker/home?region=us-east-1#/jobs/bert-1"
    assert links["Logs"] == (
        f"{console}/cloudwatch/home?region=us-east-1#logsV2:log-groups/log-group/"
        "$252Faws$252Fsagemaker$252FTrainingJobs$3FlogStreamNameFilter$3Dbert-1$252F"
    )
    metrics = unquote(links["Metrics"].replace("*", "%"))
    assert "~'/aws/sagemaker/TrainingJobs~'GPUUtilization~'Host~'bert-1/algo-1)" in metrics
    assert "~start~'2026-05-20T09:55:00Z~end~'2026-05-20T13:05:00Z" in metrics


@pytest.mark.parametrize(
    ("kind", "page"), [("processing", "processing-jobs"), ("transform", "transform-jobs")]
)
def test_each_kind_has_its_own_page_and_namespace(kind: str, page: str) -> None:
    """The host names of a transform job are unknown, so its metric is searched.

    A tuning job has no metrics and logs of its own.
    """
    links = urls(kind=kind, name="bert-1")
    assert f"#/{page}/bert-1" in links["Job"]
    assert f"{kind.capitalize()}Jobs" in links["Logs"]
    assert ("expression~'SEARCH*28" in links["Metrics"]) is (kind == "transform")
    assert list(urls(kind="tuning")) == ["Job"]


@pytest.mark.parametrize(
    ("partition", "region", "host"),
    [
        ("aws-cn", "cn-north-1", "https://cn-north-1.console.amazonaws.cn/"),
        ("aws-us-gov", "us-gov-west-1", "https://us-gov-west-1.console.amazonaws-us-gov.com/"),
        ("aws-eusc", "eusc-de-east-1", "https://eusc-de-east-1.console.amazonaws-eusc.eu/"),
    ],
)
def test_partitions(partition: str, region: str, host: str) -> None:
    """Other partitions have consoles of their own."""
    links = urls(arn=f"arn:{partition}:sagemaker:{region}:1:training-job/x", region=region)
    assert all(url.startswith(host) for url in links.values())


@pytest.mark.parametrize(
    "unknown",
    [
        {"region": None},
        {"arn": None},
        {"arn": "arn:aws-iso:sagemaker:us-iso-east-1:1:training-job/x"},
        {"region": "evil.example/"},
    ],
)
def test_no_link_without_region_and_partition(unknown: dict[str, Any]) -> None:
    """There is no link rather than a wrong one."""
    assert urls(**unknown) == {}


def test_a_job_without_times_has_a_metrics_link() -> None:
    """The link has no start and end."""
    links = urls(started_at=None, created_at="soon", ended_at=None)
    assert "~start~" not in links["Metrics"]


@given(texts())
def test_hostile_names_stay_quoted(name: str) -> None:
    """No name can end the link that contains it."""
    for url in urls(name=name).values():
        assert url.isascii()
        assert not set(url) & set('<>|"` \n')
