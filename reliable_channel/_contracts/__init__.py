"""Contracts and values that rooms on several floors share."""
