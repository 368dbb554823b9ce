"""Causal history: references to send, and messages that wait for unknown references."""
