"""CDK entry: context in, stack out. Calls no AWS and no Docker; `make synth` runs it as it is."""

from infra.assembly import assemble

assemble()
