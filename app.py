"""The entry point of the CDK app. It calls neither AWS nor Docker; `make synth` runs it."""

from infra.assembly import assemble

assemble()
