"""Audit of a channel from a Store alone, without any journal."""
