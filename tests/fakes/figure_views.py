"""Every view of a history that shows dollars.

A view answers with cells: what a figure is of ("spend", "rule", ...) and what the view says of it.
"""

from tests.fakes import figure_lists as lists
from tests.fakes import figure_pages as pages
from tests.fakes.figure_asked import Asked, View

OF_ONE_JOB: dict[str, View] = {
    "history": lists.history_text,
    "history --output json": lists.history_json,
    "history --output csv": lists.history_csv,
    "top": lists.top,
    "export jsonl": lists.export("jsonl"),
    "export csv": lists.export("csv"),
    "export parquet": lists.export("parquet"),
    "show": lists.show_text,
    "show --output json": lists.show_json,
    "page of the job": lists.job_page,
    "message": lists.alert_card,
    "page, job": pages.page_job,
    "Python, audits": lists.python_audits,
}
"""Views of jobs: asked where a scenario has one."""
OF_A_RULE: dict[str, View] = {
    "by rule": lists.by_rule_text,
    "by rule --output json": lists.by_rule_json,
    "page, rule": pages.page_rule,
}
OF_ONE_FINDING: dict[str, View] = {
    "history --rule": lists.rule_text,
    "history --rule --output json": lists.rule_json,
    "export --findings": lists.export_findings,
}
_COLUMNS = ("family", "owner", "type", "account", "month", "week", "family,month", "status,type")
OF_SUMS: dict[str, View] = {
    **{f"by {columns}": lists.by_text(columns) for columns in _COLUMNS},
    **{f"by {columns} --output json": lists.by_json(columns) for columns in _COLUMNS},
    "scan": pages.scan_text,
    "scan, family": pages.scan_family,
    "scan --output json": pages.scan_json,
    "page": pages.page_tiles,
    "page, family": pages.page_family,
    "page, all jobs": pages.page_foot,
    "page, chart": pages.page_chart,
    "digest": pages.digest,
    "Python, by": lists.python_by,
}
OF_CHANGES: dict[str, View] = {
    "changes": lists.changes_text,
    "changes --output json": lists.changes_json,
    "by week, the week before": lists.week_before,
    "page, changes": pages.page_changes,
}


def views_of(asked: Asked) -> dict[str, View]:
    """The views that have something to say of a scenario."""
    scenario = asked.scenario
    found = {**OF_SUMS}
    if asked.alone:
        found |= OF_ONE_JOB
    if scenario.rule:
        found |= OF_A_RULE | (OF_ONE_FINDING if asked.alone else {})
    return found | (OF_CHANGES if scenario.change else {})
