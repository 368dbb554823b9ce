"""Whole groups in virtual time: `sim` runs them, `sweep` runs them by the hundred."""
