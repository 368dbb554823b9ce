"""Plugins: hooks, loading, and the registry of names and URLs that they register."""
