"""Journals judged while they grow: `reliable-channel audit journals --live`."""
