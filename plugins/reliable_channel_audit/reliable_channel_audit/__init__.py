"""Audit of a channel, from the journals of its participants.

`check` needs only this package. The rest runs on Spark (`pip install
reliable-channel-audit[spark]`, docs/pipeline.md).
"""
