from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given

from sageaudit.output.text.links import document_links
from tests.fakes.documents import document, job
from tests.fakes.hostile import texts


def urls(**overrides: Any) -> dict[str, str]:
    """The links of a job, by their word."""
    return {link.label: link.url for link in document_links(document(job=job(**overrides)))}


def test_training_links() -> None:
    """Job page, metrics of the first hosts around the run, and the job's own log streams."""
    found = urls(name="bert-1")
    console = "https://us-east-1.console.aws.amazon.com"
    assert found["Job"] == f"{console}/sagemaker/home?region=us-east-1#/jobs/bert-1"
    assert found["Logs"] == (
        f"{console}/cloudwatch/home?region=us-east-1#logsV2:log-groups/log-group/"
        "$252Faws$252Fsagemaker$252FTrainingJobs$3FlogStreamNameFilter$3Dbert-1$252F"
    )
    metrics = unquote(found["Metrics"].replace("*", "%"))
    assert "~'/aws/sagemaker/TrainingJobs~'GPUUtilization~'Host~'bert-1/algo-1)" in metrics
    assert "~start~'2026-05-20T09:55:00Z~end~'2026-05-20T13:05:00Z" in metrics


@pytest.mark.parametrize(
    ("kind", "page"), [("processing", "processing-jobs"), ("transform", "transform-jobs")]
)
def test_each_kind_has_its_own_page_and_namespace(kind: str, page: str) -> None:
    """A transform host's name is not known in advance, so its metric is searched.

    A tuning job runs nothing itself: its children have metrics and logs.
    """
    found = urls(kind=kind, name="bert-1")
    assert f"#/{page}/bert-1" in found["Job"]
    assert f"{kind.capitalize()}Jobs" in found["Logs"]
    assert ("expression~'SEARCH*28" in found["Metrics"]) is (kind == "transform")
    assert list(urls(kind="tuning")) == ["Job"]


@pytest.mark.parametrize(
    ("partition", "region", "host"),
    [
        ("aws-cn", "cn-north-1", "https://cn-north-1.console.amazonaws.cn/"),
        ("aws-us-gov", "us-gov-west-1", "https://us-gov-west-1.console.amazonaws-us-gov.com/"),
    ],
)
def test_partitions(partition: str, region: str, host: str) -> None:
    """Other partitions have consoles of their own."""
    found = urls(arn=f"arn:{partition}:sagemaker:{region}:1:training-job/x", region=region)
    assert all(url.startswith(host) for url in found.values())


@pytest.mark.parametrize(
    "unknown",
    [
        {"region": None},
        {"arn": None},
        {"arn": "arn:aws-iso:sagemaker:us-iso-east-1:1:training-job/x"},
        {"region": "evil.example/"},
    ],
)
def test_no_link_from_the_unknown(unknown: dict[str, Any]) -> None:
    """Without a known region and partition there is no link rather than a wrong one."""
    assert urls(**unknown) == {}


def test_times_not_known() -> None:
    """A job without times still has a metrics link, without a span."""
    found = urls(started_at=None, created_at="soon", ended_at=None)
    assert "~start~" not in found["Metrics"]


@given(texts())
def test_hostile_names_stay_quoted(name: str) -> None:
    """No name can end the link it stands in."""
    for url in urls(name=name).values():
        assert url.isascii()
        assert not set(url) & set('<>|"` \n')
