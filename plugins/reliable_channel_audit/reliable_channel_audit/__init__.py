"""What really happened in a channel, from the journals of its participants.

`check` needs nothing but this package; the rest runs on Spark (`pip install
reliable-channel-audit[spark]`). See docs/pipeline.md.
"""
