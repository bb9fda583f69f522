"""docs/job-types.md has every type of job that the installed AWS SDK can create."""

import re

from botocore.session import get_session

from sageaudit.domain.job.kinds import JobKind
from tests.house.test_docs import ROOT

PAGE = ROOT / "docs" / "job-types.md"
_OPERATION = re.compile(r"Create\w*Job(?:V\d+|Definition)?")
_ROW = re.compile(
    r"^\| (?P<type>[^|]+) \| (?P<created>`Create[^|]+) \| (?P<audited>[^|]+) \|", re.MULTILINE
)


def rows() -> dict[str, str]:
    """Returns whether the jobs of each operation are audited, as the page's first table says."""
    audited_by_operation: dict[str, str] = {}
    for row in _ROW.finditer(PAGE.read_text(encoding="utf-8")):
        for operation in re.findall(r"`(\w+)`", row["created"]):
            assert operation not in audited_by_operation
            audited_by_operation[operation] = row["audited"].strip()
    return audited_by_operation


def test_every_type_of_job_is_on_the_page() -> None:
    """With a new type in the SDK, this fails until the page has the type."""
    operations = get_session().get_service_model("sagemaker").operation_names
    created = {name for name in operations if _OPERATION.fullmatch(name)}
    assert len(created) > len(JobKind)
    assert rows().keys() == created


def test_the_audited_types_are_the_kinds_of_job() -> None:
    """The page says of no other type that it is audited as itself."""
    audited = {operation for operation, answer in rows().items() if answer == "yes"}
    kinds = {f"Create{kind.spec.prefix}Job{kind.spec.action_suffix}" for kind in JobKind}
    assert kinds <= audited
    assert {re.sub(r"V\d+$", "", operation) for operation in audited} == {
        f"Create{kind.spec.prefix}Job" for kind in JobKind
    }
    assert set(rows().values()) == {"yes", "its jobs", "no"}
