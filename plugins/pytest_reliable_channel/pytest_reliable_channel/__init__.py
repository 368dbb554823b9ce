"""Fixtures for tests of programs on reliable channels; `plugin` has them."""
