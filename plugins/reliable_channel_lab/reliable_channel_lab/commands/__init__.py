"""The commands that this package adds to `reliable-channel`."""
