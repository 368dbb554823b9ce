"""Whole groups in virtual time: `sim` runs single groups, `sweep` hundreds of them."""
