"""Audit of journals while they grow: `reliable-channel audit journals --live`."""
