"""Reliability of groups, from logs of nodes or from journals, in figures that can be compared
between implementations."""
