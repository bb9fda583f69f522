"""Options that several commands take, each with one name and one help text."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from msgspec import Struct
from rich.console import Console

from sageaudit.cli.messages import print_json, print_message
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import is_account_id
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage
from sageaudit.exits import Exit
from sageaudit.output.terminal.layout import make_console
from sageaudit.output.text.fix_code import DIALECTS

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]
T = TypeVar("T")
_FILE = click.Path(path_type=Path)
_RECORDED = "Recorded job: a Describe* response as the AWS CLI prints it, or a recording."
_HISTORIES = frozenset({"history", "table"})
"""The arguments that name a history."""
ROW_COUNT = click.IntRange(1, 1_000_000)
"""More rows than anybody reads; --all has no limit."""


class DefaultGroup(click.Group):
    """Runs its first command where none is named: `advice --owner ana`, `prices ml.g5.xlarge`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the name before the words."""
        if not args or args[0] not in {*self.commands, "-h", "--help"}:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


class EnumChoice(click.Choice[str]):
    """Takes a value of an enumeration; the command gets its member."""

    def __init__(
        self, enum_type: type[enum.Enum], members: Iterable[enum.Enum] | None = None
    ) -> None:
        """`members`: those to choose from, in the order of the help; by default all."""
        super().__init__([str(member.value) for member in members or enum_type])
        self._of = enum_type

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The member."""
        return self._of(super().convert(value, param, ctx))


class HistoryOption(click.Option):
    """Names a history, with a variable of the environment as its default.

    A history that the command line names wins over both variables.
    """

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """None where the command line names the other one."""
        if self.name not in opts and not opts.keys().isdisjoint(_HISTORIES):
            return None, ParameterSource.DEFAULT
        return super().consume_value(ctx, opts)


def option_group(
    name: str, struct_type: Any, *decorators: Any, names: Iterable[str] = ()
) -> Decorator:
    """Adds options to a command, which gets them as one `form` in its argument `name`.

    `names`: those of the options, where the form has not a field for each.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def call(**given: Any) -> Any:
            own = {of: given.pop(of) for of in names or struct_type.__struct_fields__}
            return command(**given, **{name: struct_type(**own)})

        decorated: Command = call
        for decorator in reversed(decorators):
            decorated = decorator(decorated)
        return decorated

    return decorate


def _load_policy(_: click.Context, __: click.Parameter, path: Path | None) -> Policy:
    if path is None:
        return Policy()
    from sageaudit.adapters.files import policy_file  # noqa: PLC0415 - it needs boto3

    return policy_file.load_policy(path)


def history_option(text: str) -> Decorator:
    """--history with this help."""
    return click.option(
        "--history",
        metavar="FILE",
        type=_FILE,
        cls=HistoryOption,
        envvar="SAGEAUDIT_HISTORY",
        show_envvar=True,
        help=text,
    )


KIND_OPTION = click.option(
    "--kind",
    type=EnumChoice(JobKind),
    help="Kind of the job; needed only where jobs of two kinds share NAME.",
)
JOB_REGION = click.option(
    "--region", help="AWS region of the job; by default that of the ARN or of your AWS settings."
)
TABLE_REGION = click.option(
    "--region", help="AWS region of the table; by default that of your AWS settings."
)
PROFILE = click.option("--profile", help="AWS profile to take credentials from.")
HISTORY_OPTION = history_option(
    "File that holds the history; by default the one in your data folder."
)
TABLE_OPTION = click.option(
    "--table",
    metavar="NAME",
    cls=HistoryOption,
    envvar="SAGEAUDIT_TABLE",
    show_envvar=True,
    help="DynamoDB table that holds the history, in place of a file.",
)
RECORDINGS = click.option(
    "--recording",
    "recordings",
    multiple=True,
    type=_FILE,
    help=f"{_RECORDED} May be repeated.",
)
RECORDING = click.option(
    "--recording",
    "path",
    type=_FILE,
    help=_RECORDED,
)
POLICY = click.option(
    "--policy",
    type=_FILE,
    callback=_load_policy,
    help="Policy file (TOML) to apply; by default the policy of a new installation.",
)


class JobOptions(Struct, frozen=True):
    """How a named job is found in an account, and the policy that judges it."""

    kind: JobKind | None
    region: str | None
    profile: str | None
    policy: Policy


JOB = option_group("target", JobOptions, KIND_OPTION, JOB_REGION, PROFILE, POLICY)
OUTPUT = click.option(
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Format: table for people, json for scripts.",
)
GUIDES = click.option(
    "--guides", is_flag=True, help="Also print advice without dollars that fits the job."
)
NO_COLOR = click.option("--no-color", is_flag=True, help="Print without colours (or NO_COLOR=1).")
FIX_AS = click.option(
    "--fix-as",
    type=click.Choice(DIALECTS),
    help="Print each fix below the report, as code for an SDK or boto3.",
)


class PrintOptions(Struct, frozen=True):
    """How one document is printed."""

    output: str
    no_color: bool = False

    @property
    def is_json(self) -> bool:
        """Whether it is printed for a program."""
        return self.output == "json"

    def print_document(
        self,
        value: T,
        print_table: Callable[[T, Console], None],
        make_document: Callable[[T], object] = lambda found: found,
    ) -> None:
        """Prints the `document` of what was found as JSON, or its `table`."""
        if self.is_json:
            print_json(make_document(value))
        else:
            print_table(value, make_console(no_color=self.no_color))


PRINT_OPTIONS = option_group("printed", PrintOptions, OUTPUT, NO_COLOR)
SEVERITIES = EnumChoice(Severity, reversed(Severity))


def fail_on_option(subject: str, default: str = "") -> Decorator:
    """--fail-on of a command that judges so named jobs; `default`: what fails without it."""
    return click.option(
        "--fail-on",
        type=SEVERITIES,
        help="Exit with code 10 if a finding has this severity or a higher one, with 11 if none has"
        f" and {subject} could not be judged.{default}",
    )


def exit_code(
    name: str, severities: Iterable[str], fail_on: Severity | None, *, could_judge: bool
) -> Exit:
    """The code of one job with these findings; DONE without --fail-on.

    A job that could not be judged does not pass: no finding is no proof then.
    """
    if fail_on is None:
        return Exit.DONE
    if any(Severity(severity).rank >= fail_on.rank for severity in severities):
        return Exit.FINDINGS
    if not could_judge:
        print_message(f"{name}: could not be judged, so --fail-on does not pass it")
        return Exit.NOT_JUDGED
    return Exit.DONE


def check_account_id(text: str, option: str) -> str:
    """Returns `text`. Raises BadUsage, naming `option`, unless it is an account id."""
    if not is_account_id(text):
        raise BadUsage(f"{option} {text} is not an account id, which has 12 digits")
    return text
