"""What the official suites drive, on this SDK and its embedded node; see `docs/compat.md`."""
