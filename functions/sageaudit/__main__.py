"""`python -m sageaudit` runs the command `sageaudit`, also where its script is not on the path."""

from __future__ import annotations

from sageaudit.cli.main import main

if __name__ == "__main__":
    main()
