"""`make try`: tries a deployment in a real account, compares it with the local AWS, removes it.

sageaudit was made without an AWS account. Its local AWS is a simulation, so the first real
deployment may show what no test can. This deploys the stack under a name of its own, runs a job of
two minutes, and writes a checklist: what the local AWS did, and what AWS did.
"""
