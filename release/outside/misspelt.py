"""A program with a misspelt option: every type checker must refuse it."""

from reliable_channel import BlockingReliableChannel, ReliableChannel

ReliableChannel(channel_id="c", sender_id="alice", retry_intervall_ms=5)
BlockingReliableChannel(channel_id="c", sender_id="alice", retry_intervall_ms=5)
