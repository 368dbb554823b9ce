"""Causal history: the references to send, and the messages that wait for unknown ones."""
