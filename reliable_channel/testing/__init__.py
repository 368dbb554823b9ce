"""Test tools for authors of plugins. They need pytest, unlike the SDK itself."""
