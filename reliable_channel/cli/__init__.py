"""The command line: `reliable-channel`."""
