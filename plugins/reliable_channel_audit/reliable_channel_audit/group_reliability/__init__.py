"""Reliability of groups from logs or journals, comparable between implementations."""
