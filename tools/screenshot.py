"""Takes the README's picture: a report of the example company, in a headless Chromium.

`make picture` writes docs/images/report.png.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from local import example
from local.chromium import browser
from tools.pages.readme import command_output

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "report.png"
_WIDTH, _HEIGHT = 1280, 945


def main() -> None:
    """Writes the picture."""
    with tempfile.TemporaryDirectory() as folder, browser() as tab:
        history, report = (
            example.write_history(Path(folder, "example.db")),
            Path(folder, "report.html"),
        )
        command_output(
            "report", "--history", str(history), "-o", str(report), *example.DAYS_OPTIONS
        )
        tab.emulate_media(prefers_color_scheme="light")
        tab.resize(_WIDTH, _HEIGHT)
        tab.open(report)
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_bytes(tab.screenshot())
    print(f"{PICTURE}: {PICTURE.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
