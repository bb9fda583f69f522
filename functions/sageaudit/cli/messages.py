"""What the command line says beside its data: one line on stderr."""

from __future__ import annotations

import click

from sageaudit.text.untrusted import terminal


def say(text: str) -> None:
    """Prints one message; nothing in it can move the cursor."""
    click.echo(f"sageaudit: {terminal(text)}", err=True)
