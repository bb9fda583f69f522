"""Messages of the command line, printed to stderr."""

from __future__ import annotations

import click

from sageaudit.text.untrusted import terminal


def say(text: str) -> None:
    """Prints one message to stderr, without control characters."""
    click.echo(f"sageaudit: {terminal(text)}", err=True)
