"""The version, which the distribution has from here."""

__version__ = "0.1.0"
