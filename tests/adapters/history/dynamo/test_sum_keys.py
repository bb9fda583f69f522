"""The keys of daily sums: one item for each place, and days in order."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.history.dynamo import keys
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.audit.sums import Scope, SumRow, Sums
from tests.fakes.entries import NOON

texts = st.one_of(st.text("a#~$é/", max_size=6), st.text(max_size=700))
days = st.dates(date(2026, 1, 1), date(2026, 12, 31))
rows = st.builds(
    lambda scope, region, name, day: SumRow(scope, "1", region, name, day, Sums()),
    st.sampled_from(Scope),
    st.one_of(st.sampled_from(["us-east-1", "eu-west-1"]), texts),
    texts,
    days,
)


def place(row: SumRow) -> tuple[Scope, str | None, str, date]:
    """What an item is about."""
    return row.scope, row.name, row.region, row.day


@given(rows, rows, st.integers(0, 7))
def test_two_places_never_share_an_item(first: SumRow, second: SumRow, shard: int) -> None:
    """Also where a name contains the sign that parts keys."""
    same = keys.sums_sk(first, shard) == keys.sums_sk(second, shard)
    assert same == (place(first) == place(second))


@given(rows, st.integers(0, 7))
def test_a_sort_key_is_never_too_long(row: SumRow, shard: int) -> None:
    """DynamoDB takes 1,024 bytes."""
    assert len(keys.sums_sk(row, shard).encode()) <= 1_024


@given(rows, st.integers(0, 7))
def test_a_scope_and_a_name_hold_their_rows(row: SumRow, shard: int) -> None:
    """So a question without a region or name misses none."""
    for name in (None, row.name):
        first, last = keys.sums_key_range(row.scope, name)
        assert first <= keys.sums_sk(row, shard) <= last


def test_a_quiet_name_has_one_shard_and_each_conflict_another() -> None:
    """An account's audits are spread at once."""
    run = JobKey("arn:aws:sagemaker:us-east-1:1:training-job/a", NOON - timedelta(hours=1))
    tries = [keys.sums_shard(run, Scope.FAMILY, number) for number in range(6)]
    assert tries[0] == 0
    assert len(set(tries[1:])) == 5
    accounts = {
        keys.sums_shard(JobKey(f"{run.arn}{number}", run.created_at), Scope.ACCOUNT, 0)
        for number in range(100)
    }
    assert accounts == set(range(keys.SUMS_SHARDS))
