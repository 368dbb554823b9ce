"""Building the distributions and trying them as a user would (`make dist`)."""
