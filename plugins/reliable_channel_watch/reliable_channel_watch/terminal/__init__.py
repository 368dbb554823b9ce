"""The view in a terminal."""
