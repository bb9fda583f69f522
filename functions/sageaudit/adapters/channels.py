"""What the channels have in common."""

from __future__ import annotations

from sageaudit.errors import ChannelUnavailable


class MaybeSent(ChannelUnavailable):
    """The notice left and no answer came: it may have been posted.

    Whoever holds its lease keeps it, so that the next try is known to be a repeat.
    """
