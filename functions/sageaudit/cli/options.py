"""Options that several commands take, each with one name and one help text."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem
from msgspec import Struct
from rich.console import Console

from sageaudit.cli.completion import complete_regions
from sageaudit.cli.messages import print_json, print_message
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import REGION, is_account_id
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage
from sageaudit.exits import Exit
from sageaudit.output.terminal.layout import make_console
from sageaudit.output.text.fix_code import DIALECTS

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]
T = TypeVar("T")
_FILE = click.Path(path_type=Path)
_RECORDING_HELP = "Recording of a job, or its Describe* response as the AWS CLI prints it."
_HISTORY_ARGUMENTS = frozenset({"history", "table"})
"""The arguments that name a history."""
ROW_COUNT = click.IntRange(1, 1_000_000)
"""The range of --limit. --all has no limit."""


class DefaultGroup(click.Group):
    """Runs its first command if none is named: `advice --owner ana`, `prices ml.g5.xlarge`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Inserts the first command's name, unless the first word is a command or a help option."""
        is_completion_of_first_word = ctx.resilient_parsing and not args
        if not is_completion_of_first_word and (
            not args or args[0] not in {*self.commands, "-h", "--help"}
        ):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns the commands, and the options or values of the first one."""
        name, default = next(iter(self.commands.items()))
        items = super().shell_complete(ctx, incomplete)
        with default.make_context(name, [], parent=ctx, resilient_parsing=True) as default_ctx:
            items += default.shell_complete(default_ctx, incomplete)
            for param in default.params:
                if isinstance(param, click.Argument):
                    items += param.shell_complete(default_ctx, incomplete)
        return items


class EnumChoice(click.Choice[str]):
    """Accepts the values of an enumeration. The command gets the member."""

    def __init__(
        self, enum_type: type[enum.Enum], members: Iterable[enum.Enum] | None = None
    ) -> None:
        """`members` are the choices, in the order of the help; by default all."""
        super().__init__([str(member.value) for member in members or enum_type])
        self._enum_type = enum_type

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the member with this value."""
        return self._enum_type(super().convert(value, param, ctx))


class HistoryOption(click.Option):
    """An option that names a history, by default from an environment variable.

    A history on the command line overrides the variables of both history options.
    """

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """Returns None if the command line names the history by the other option."""
        if self.name not in opts and not opts.keys().isdisjoint(_HISTORY_ARGUMENTS):
            return None, ParameterSource.DEFAULT
        return super().consume_value(ctx, opts)


def option_group(
    name: str, struct_type: Any, *decorators: Any, names: Iterable[str] = ()
) -> Decorator:
    """Adds options to a command. It gets them as one `struct_type` in its argument `name`.

    `names` are the options' names, by default the fields of `struct_type`.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapper(**arguments: Any) -> Any:
            values = {
                option: arguments.pop(option) for option in names or struct_type.__struct_fields__
            }
            return command(**arguments, **{name: struct_type(**values)})

        decorated: Command = wrapper
        for decorator in reversed(decorators):
            decorated = decorator(decorated)
        return decorated

    return decorate


def load_policy(path: Path | None) -> Policy:
    """Returns the policy of the option --policy. Raises BadPolicy."""
    if path is None:
        return Policy()
    from sageaudit.adapters.files import policy_file  # noqa: PLC0415 - it needs boto3

    return policy_file.load_policy(path)


def history_option(text: str) -> Decorator:
    """Returns the option --history with this help text."""
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
    help="Kind of the job; needed only if jobs of two kinds have this NAME.",
)


def region_option(text: str, name: str = "--region", *names: str, **settings: Any) -> Decorator:
    """Returns an option that names a region, with this help text."""
    return click.option(name, *names, help=text, shell_complete=complete_regions, **settings)


JOB_REGION_OPTION = region_option(
    "AWS region of the job; by default that of the ARN or of your AWS settings."
)
TABLE_REGION_OPTION = region_option(
    "AWS region of the table; by default that of your AWS settings."
)
PROFILE_OPTION = click.option("--profile", help="AWS profile to take credentials from.")
HISTORY_OPTION = history_option("History file; by default the one in your data folder.")
TABLE_OPTION = click.option(
    "--table",
    metavar="NAME",
    cls=HistoryOption,
    envvar="SAGEAUDIT_TABLE",
    show_envvar=True,
    help="DynamoDB table with the history, instead of a file.",
)
RECORDINGS_OPTION = click.option(
    "--recording",
    "recordings",
    multiple=True,
    type=_FILE,
    help=f"{_RECORDING_HELP} May be repeated.",
)
RECORDING_OPTION = click.option(
    "--recording",
    "path",
    type=_FILE,
    help=_RECORDING_HELP,
)
POLICY_HELP = "Policy file (TOML) to apply; by default sageaudit's own default policy."
POLICY_OPTION = click.option(
    "--policy",
    type=_FILE,
    callback=lambda ctx, _, path: load_policy(None if ctx.resilient_parsing else path),
    help=POLICY_HELP,
)


class JobOptions(Struct, frozen=True):
    """How to find a named job in an account, and the policy for its audit."""

    kind: JobKind | None
    region: str | None
    profile: str | None
    policy: Policy


JOB_OPTIONS = option_group(
    "job_options", JobOptions, KIND_OPTION, JOB_REGION_OPTION, PROFILE_OPTION, POLICY_OPTION
)
OUTPUT_OPTION = click.option(
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Format: table for people, json for scripts.",
)
GUIDES_OPTION = click.option(
    "--guides", is_flag=True, help="Also print advice that fits the job but has no dollar amount."
)
NO_COLOR_OPTION = click.option(
    "--no-color", is_flag=True, help="Print without colours (or NO_COLOR=1)."
)
FIX_AS_OPTION = click.option(
    "--fix-as",
    type=click.Choice(DIALECTS),
    help="Print each fix below the report, as code for an SDK or boto3.",
)


class PrintOptions(Struct, frozen=True):
    """The options for the output of one document."""

    output: str
    no_color: bool = False

    @property
    def is_json(self) -> bool:
        """True if the output is JSON."""
        return self.output == "json"

    def print_document(
        self,
        value: T,
        print_table: Callable[[T, Console], None],
        make_document: Callable[[T], object] = lambda value: value,
    ) -> None:
        """Prints the value as JSON by `make_document`, or as a table by `print_table`."""
        if self.is_json:
            print_json(make_document(value))
        else:
            print_table(value, make_console(no_color=self.no_color))


PRINT_OPTIONS = option_group("print_options", PrintOptions, OUTPUT_OPTION, NO_COLOR_OPTION)
SEVERITIES = EnumChoice(Severity, reversed(Severity))


def fail_on_option(subject: str, default: str = "") -> Decorator:
    """Returns the option --fail-on. `subject` is what the command judges.

    `default` says what fails without the option.
    """
    return click.option(
        "--fail-on",
        type=SEVERITIES,
        help="Exit with code 10 if a finding has this severity or a higher one; with 11 if there is"
        f" none, but {subject} could not be judged.{default}",
    )


def exit_code(
    name: str, severities: Iterable[str], fail_on: Severity | None, *, could_judge: bool
) -> Exit:
    """Returns FINDINGS if a finding has at least the severity `fail_on`, else DONE.

    Without `fail_on`, returns DONE. A job that could not be judged does not pass (NOT_JUDGED),
    since its findings may be missing.
    """
    if fail_on is None:
        return Exit.DONE
    if any(Severity(severity).rank >= fail_on.rank for severity in severities):
        return Exit.FINDINGS
    if not could_judge:
        print_message(f"{name} could not be judged, so it does not pass --fail-on")
        return Exit.NOT_JUDGED
    return Exit.DONE


def check_region(text: str, option: str) -> str:
    """Returns `text`. Raises BadUsage that names `option` if it is not a region's name."""
    if not REGION.fullmatch(text):
        raise BadUsage(f"{option} {text} is not a region; a region looks like eu-west-1")
    return text


def check_account_id(text: str, option: str) -> str:
    """Returns `text`. Raises BadUsage that names `option` if it is not an account id."""
    if not is_account_id(text):
        raise BadUsage(f"{option} {text} is not an account id, which has 12 digits")
    return text
