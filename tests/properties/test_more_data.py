"""What more data would take back is not said of less."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.audit.document import AuditDocument
from tests.properties.judged import (
    EXEMPT,
    MICRO,
    Document,
    dollars,
    held,
    judged,
    of_the_machine,
    says,
    told_otherwise,
)
from tests.properties.programs import METRICS, Run, runs


def certain(audit: AuditDocument) -> Decimal:
    """The counted dollars of measured and derived findings."""
    return dollars(
        one for one in of_the_machine(audit) if one["confidence"] in {"measured", "derived"}
    )


@pytest.mark.parametrize("metric", METRICS)
@held(40)
@given(run=runs(whole=True))
def test_one_more_metric_takes_no_measured_finding_back(metric: str, run: Run) -> None:
    """Found as measured without the metric: found with it."""
    told = run.told()
    less = told_otherwise(told, lambda one: None if one["metric"] == metric else one)
    measured = {
        one["rule"]
        for one in judged(less)["findings"]
        if one["confidence"] == "measured" and one["rule"] not in EXEMPT
    }
    assert measured <= {one["rule"] for one in judged(told)["findings"]}


def nulls(told: Document, data: st.DataObject) -> Document:
    """A metric whose points are all null."""
    metric = data.draw(st.sampled_from(METRICS), label="metric of nulls")

    def emptied(one: Document) -> Document:
        if one["metric"] == metric:
            one["values"] = [None for _ in one["values"]]
        return one

    return told_otherwise(told, emptied)


def points_lost(told: Document, data: st.DataObject) -> Document:
    """Some minutes of one metric are null."""
    metric = data.draw(st.sampled_from(METRICS), label="metric")
    first, length = data.draw(st.integers(0, 599)), data.draw(st.integers(1, 120))

    def torn(one: Document) -> Document:
        if one["metric"] == metric:
            one["values"] = [
                None if first <= minute < first + length else value
                for minute, value in enumerate(one["values"])
            ]
        return one

    return told_otherwise(told, torn)


def one_host_missing(told: Document, data: st.DataObject) -> Document:
    """One host has no series, in all metrics or in one."""
    hosts = sorted({one["host"] for one in told["metrics"]["series"]})
    host = data.draw(st.sampled_from(hosts), label="missing host")
    of = data.draw(st.sampled_from((METRICS, *((name,) for name in METRICS))), label="metrics")
    return told_otherwise(
        told, lambda one: None if one["host"] == host and one["metric"] in of else one
    )


def early_end(told: Document, data: st.DataObject) -> Document:
    """Every series of a metric, or of all, ends early."""
    of = data.draw(st.sampled_from((METRICS, *((name,) for name in METRICS))), label="metrics")
    kept = data.draw(st.integers(1, 99), label="percent kept")

    def ended(one: Document) -> Document:
        if one["metric"] in of:
            one["values"] = one["values"][: len(one["values"]) * kept // 100]
        return one

    return told_otherwise(told, ended)


def another_job(told: Document, data: st.DataObject) -> Document:
    """One metric, or all, of another job: its name is on the series."""
    of = data.draw(st.sampled_from((METRICS, *((name,) for name in METRICS))), label="metrics")

    def foreign(one: Document) -> Document:
        if one["metric"] in of:
            one["host"] = f"another-{one['host']}"
        return one

    return told_otherwise(told, foreign)


def hourly(told: Document, data: st.DataObject) -> Document:
    """A point an hour: the mean of its minutes."""

    def coarser(one: Document) -> Document:
        values = one["values"]
        hours = [
            [value for value in values[first : first + 60] if value is not None]
            for first in range(0, len(values), 60)
        ]
        one["values"] = [sum(known) / len(known) if known else None for known in hours]
        return one

    other = told_otherwise(told, coarser)
    other["metrics"]["period_s"] = 3600
    return other


LOSSES = (nulls, points_lost, one_host_missing, early_end, another_job, hourly)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
@held(60)
@given(run=runs(whole=True), data=st.data())
def test_lost_data_adds_no_dollar_that_more_data_would_take_back(
    loss: object, run: Run, data: st.DataObject
) -> None:
    """The same run with less recorded counts no more, and each rule answers."""
    assert callable(loss)
    told = run.told()
    other = loss(told, data)
    whole, partial = judged(told), judged(other)
    assert certain(partial) <= certain(whole) + MICRO, f"{says(whole)}\n{says(partial)}"
