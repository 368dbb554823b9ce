"""The commands `reliable-channel bot …`, and what they run."""
