"""What authors of plugins test with; needs pytest, which the SDK itself does without."""
