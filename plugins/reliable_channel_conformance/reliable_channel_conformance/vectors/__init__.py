"""Test vectors for every implementation, made by this core: values, bytes, and whole scenarios."""
