"""The comparison of documents before and after a change."""

from tools.documents import differences, leaves


def test_a_changed_value_is_printed_with_its_path() -> None:
    before = {"job": {"bill": {"total_usd": "1.20"}, "findings": [{"rule": "gpu-idle"}]}}
    after = {"job": {"bill": {"total_usd": "1.21"}, "findings": [{"rule": "gpu-idle"}]}}
    assert [*differences(before, after)] == ["job bill.total_usd: 1.20 -> 1.21"]


def test_a_value_on_one_side_alone_is_printed() -> None:
    assert [*differences({"job": {"a": 1}}, {"job": {"a": 1, "b": None}})] == [
        "job b: (absent) -> None"
    ]


def test_a_document_on_one_side_alone_is_printed() -> None:
    assert [*differences({"job": {"a": 1}}, {})] == [
        "job : (absent) -> None",
        "job a: 1 -> (absent)",
    ]


def test_the_digest_of_the_ruleset_may_differ() -> None:
    assert not [
        *differences({"job": {"audit": {"ruleset": "a"}}}, {"job": {"audit": {"ruleset": "b"}}})
    ]


def test_an_empty_list_is_a_value_of_its_own() -> None:
    assert [*leaves({"findings": [], "bill": {"lines": [1]}})] == [
        ("findings", []),
        ("bill.lines.0", 1),
    ]
