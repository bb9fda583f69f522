"""The catalogue of instance types, and the program that rebuilds it from EC2's answer."""

import json
from pathlib import Path
from typing import Any

import botocore
import pytest

from sageaudit.adapters.prices import packaged
from tools import catalogue

DOCUMENT: dict[str, Any] = json.loads(catalogue.CATALOGUE.read_text(encoding="utf-8"))
ROWS: dict[str, catalogue.Row] = DOCUMENT["types"]


def entry(name: str, **changes: Any) -> dict[str, Any]:
    """Returns one type as EC2 describes it, with the keys that the catalogue reads: 4 vCPU, 16 GiB,
    EBS.
    """
    plain = {
        "InstanceType": name,
        "CurrentGeneration": True,
        "InstanceStorageSupported": False,
        "BurstablePerformanceSupported": False,
        "VCpuInfo": {"DefaultVCpus": 4},
        "MemoryInfo": {"SizeInMiB": 16384},
        "NetworkInfo": {"EfaSupported": False},
    }
    return plain | changes


GPU = {
    "GpuInfo": {
        "Gpus": [
            {
                "Name": "A10G",
                "Manufacturer": "NVIDIA",
                "Count": 4,
                "MemoryInfo": {"SizeInMiB": 22888},
            }
        ],
        "TotalGpuMemoryInMiB": 91552,
    },
    "InstanceStorageSupported": True,
    "NetworkInfo": {"EfaSupported": True},
}
OLD_ROWS: dict[str, catalogue.Row] = {
    "ml.m5.xlarge": {
        "family": "m5",
        "size": "xlarge",
        "category": "general",
        "vcpu": 2,
        "memory_gib": 8.0,
        "gpus": 0,
        "ebs_volume_billed": None,
        "legacy_family": False,
        "successors": ["ml.m7i.xlarge"],
    },
    "ml.p2.xlarge": {
        "family": "p2",
        "size": "xlarge",
        "category": "gpu",
        "vcpu": 4,
        "memory_gib": 61,
        "gpus": 1,
        "gpu": "K80",
        "gpu_memory_gib": 12,
        "accelerator": "nvidia",
        "ebs_volume_billed": True,
        "legacy_family": True,
        "successors": ["ml.g5.xlarge"],
        "entered_by_hand": True,
    },
}


def offered(*names: str) -> dict[str, list[str]]:
    """Returns the same types for all three kinds of job."""
    return {kind: [*OLD_ROWS, *names] for kind in ("training", "processing", "transform")}


def test_every_training_type_of_botocore_is_known() -> None:
    """If a newer botocore has more than 225 types, run `python -m tools.catalogue`."""
    names = catalogue.enums()["training"]
    assert (len(names), catalogue.unknown_types(packaged.instance_types(), names)) == (225, [])


def test_the_kinds_of_job_are_those_of_the_enums() -> None:
    """18 types are not for processing, 114 not for transform jobs."""
    assert DOCUMENT["provenance"]["botocore"] == botocore.__version__
    enums = catalogue.enums()
    for name, row in ROWS.items():
        assert row["kinds"] == [kind for kind in enums if name in enums[kind]], name
    counts = {kind: sum(kind in row["kinds"] for row in ROWS.values()) for kind in enums}
    assert counts == {"training": 225, "processing": 207, "transform": 111}


def test_an_unlisted_type_is_unknown() -> None:
    """A name that looks like a listed one does not matter."""
    assert packaged.instance_types().get("ml.g5.96xlarge") is None


def test_a_row_is_what_ec2_measured_and_what_people_edited() -> None:
    """vCPU, memory and EBS are EC2's; category and successors stay."""
    rows, notes = catalogue.rebuild(OLD_ROWS, [entry("m5.xlarge")], offered())
    row = rows["ml.m5.xlarge"]
    assert (row["vcpu"], row["memory_gib"], row["ebs_volume_billed"]) == (4, 16.0, True)
    assert row["efa"] is False
    assert (row["category"], row["successors"]) == ("general", ["ml.m7i.xlarge"])
    assert row["kinds"] == ["training", "processing", "transform"]
    assert notes == []


def test_which_types_take_an_elastic_fabric_adapter() -> None:
    """Every row says so. In one family, only the large sizes have it."""
    assert {type(row["efa"]) for row in ROWS.values()} == {bool}
    types = packaged.instance_types()
    assert [types[f"ml.{name}"].efa for name in ("g5.4xlarge", "g5.8xlarge", "p3.16xlarge")] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("network", "gbps"),
    [
        pytest.param(
            {
                "NetworkPerformance": "Up to 10 Gigabit",
                "NetworkCards": [{"BaselineBandwidthInGbps": 1.25, "PeakBandwidthInGbps": 10.0}],
            },
            10.0,
            id="the peak of the card",
        ),
        pytest.param(
            {
                "NetworkPerformance": "4x 100 Gigabit",
                "NetworkCards": [{"PeakBandwidthInGbps": 100.0}] * 4,
            },
            400.0,
            id="the sum of four cards",
        ),
        # the two fields may disagree: the most of both is a bound
        pytest.param(
            {
                "NetworkPerformance": "3200 Gigabit",
                "NetworkCards": [{"PeakBandwidthInGbps": 1600.0}],
            },
            3200.0,
            id="the two fields disagree, and the most of both is a bound",
        ),
        pytest.param({"NetworkPerformance": "12.5 Gigabit"}, 12.5, id="the words alone"),
        pytest.param({"NetworkPerformance": "High"}, None, id="words without a figure"),
        pytest.param({}, None, id="no figure"),
    ],
)
def test_the_most_that_the_network_of_a_type_carries(
    network: dict[str, Any], gbps: float | None
) -> None:
    """If EC2 has no figure, it is unknown, never 0."""
    described = [entry("m5.xlarge", NetworkInfo={"EfaSupported": False, **network})]
    rows, _ = catalogue.rebuild(OLD_ROWS, described, offered())
    assert rows["ml.m5.xlarge"].get("network_gbps") == gbps


def test_nearly_every_type_has_its_network() -> None:
    """Of the types with an EBS volume, which a download may fill, one has no figure."""
    types = packaged.instance_types().values()
    assert [t.name for t in types if t.is_ebs_billed and t.network_gbps is None] == ["ml.p2.xlarge"]
    assert packaged.instance_types()["ml.m5.xlarge"].network_gbps == 10


def test_a_successor_is_a_known_type_of_a_newer_generation() -> None:
    for name, kind in packaged.instance_types().items():
        for successor in kind.successors:
            assert not packaged.instance_types()[successor].is_legacy, (name, successor)
    assert packaged.instance_types()["ml.c4.8xlarge"].successors == (
        "ml.c6i.8xlarge",
        "ml.c7i.8xlarge",
        "ml.c5.9xlarge",
    )


def test_a_row_entered_by_hand_stays() -> None:
    """EC2's figures do not replace it."""
    rows, notes = catalogue.rebuild(OLD_ROWS, [entry("m5.xlarge"), entry("p2.xlarge")], offered())
    assert rows["ml.p2.xlarge"] == OLD_ROWS["ml.p2.xlarge"] | {
        "kinds": rows["ml.p2.xlarge"]["kinds"]
    }
    assert notes == []


def test_a_new_type_comes_at_the_end_with_its_gpus() -> None:
    """22,888 MiB are 22.35 GiB on each of four; local NVMe means no EBS volume."""
    described = [entry("m5.xlarge"), entry("g5.12xlarge", **GPU)]
    rows, _ = catalogue.rebuild(OLD_ROWS, described, offered("ml.g5.12xlarge"))
    assert list(rows) == ["ml.m5.xlarge", "ml.p2.xlarge", "ml.g5.12xlarge"]
    row = rows["ml.g5.12xlarge"]
    assert (row["gpus"], row["gpu"], row["gpu_memory_gib"]) == (4, "A10G", 22.35)
    assert (row["category"], row["accelerator"], row["efa"]) == ("gpu", "nvidia", True)
    assert (row["ebs_volume_billed"], row["legacy_family"], row["successors"]) == (False, False, [])


@pytest.mark.parametrize(
    ("changes", "category"),
    [
        ({"MemoryInfo": {"SizeInMiB": 8192}}, "compute"),
        ({}, "general"),
        ({"MemoryInfo": {"SizeInMiB": 32768}}, "memory"),
        ({"BurstablePerformanceSupported": True}, "burstable"),
        ({"NeuronInfo": {"NeuronDevices": []}}, "trainium"),
    ],
)
def test_a_new_types_category_is_what_it_is(changes: dict[str, Any], category: str) -> None:
    """The category depends on the figures, not on the name."""
    rows, _ = catalogue.rebuild(
        OLD_ROWS, [entry("zz9.xlarge", **changes)], offered("ml.zz9.xlarge")
    )
    assert rows["ml.zz9.xlarge"]["category"] == category


def test_what_ec2_does_not_describe_is_named() -> None:
    """A known row stays as it was; an unknown type stays unknown."""
    rows, notes = catalogue.rebuild(OLD_ROWS, [], offered("ml.zz9.xlarge"))
    assert rows["ml.m5.xlarge"]["vcpu"] == 2
    assert "ml.zz9.xlarge" not in rows
    assert notes == [
        "ml.m5.xlarge: EC2 did not describe it; its row stays as it was",
        "ml.zz9.xlarge: neither EC2 nor the catalogue knows it; it stays unknown",
    ]


def test_an_entry_without_a_documented_key_is_refused() -> None:
    """The error names the type and the key."""
    broken = entry("m5.xlarge")
    del broken["MemoryInfo"]
    with pytest.raises(catalogue.Unreadable, match=r"ml\.m5\.xlarge.*MemoryInfo"):
        catalogue.rebuild(OLD_ROWS, [broken], offered())


def test_gpus_of_two_models_are_refused() -> None:
    """A row has one model."""
    [first] = GPU["GpuInfo"]["Gpus"]  # type: ignore[index]
    two = {"GpuInfo": {"Gpus": [first, first | {"Name": "L4"}]}}
    with pytest.raises(catalogue.Unreadable, match="several models"):
        catalogue.rebuild(OLD_ROWS, [entry("m5.xlarge", **two)], offered())


def test_the_program_rewrites_one_row_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The input is a file as the AWS CLI prints it. Missing types are printed to stderr."""
    answer, target = tmp_path / "types.json", tmp_path / "catalogue.json"
    answer.write_text(json.dumps({"InstanceTypes": [entry("m5.xlarge")]}))
    target.write_text(json.dumps(DOCUMENT))
    assert catalogue.main(["--from", str(answer), "--catalogue", str(target)]) == 0
    written = json.loads(target.read_text(encoding="utf-8"))
    assert list(written["types"]) == list(ROWS)
    assert written["types"]["ml.g5.xlarge"] == ROWS["ml.g5.xlarge"]
    lines = target.read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith('  "ml.') for line in lines) == 225
    printed_errors = capsys.readouterr().err
    assert "ml.g5.xlarge: EC2 did not describe it" in printed_errors
    assert "ml.p2.xlarge" not in printed_errors


@pytest.mark.parametrize("text", ["not json", "[]", '{"InstanceTypes": 3}', '{"Images": []}'])
def test_a_file_that_is_no_answer_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """The program prints one sentence, exits with 2, and does not change the catalogue."""
    answer, target = tmp_path / "types.json", tmp_path / "catalogue.json"
    answer.write_text(text)
    target.write_text(json.dumps(DOCUMENT))
    before = target.read_text(encoding="utf-8")
    assert catalogue.main(["--from", str(answer), "--catalogue", str(target)]) == 2
    assert str(answer) in capsys.readouterr().err
    assert target.read_text(encoding="utf-8") == before


def test_the_shipped_file_is_in_the_programs_own_form() -> None:
    """So the next rebuild changes only what EC2 changed."""
    shipped = catalogue.CATALOGUE.read_text(encoding="utf-8")
    assert catalogue.text(DOCUMENT["provenance"], ROWS) == shipped
