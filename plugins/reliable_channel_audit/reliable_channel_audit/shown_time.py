"""Times of journals as text, for any number that another participant wrote."""

from datetime import UTC, datetime


def shown_time(at_ms: float, form: str) -> str:
    """Return a time (ms since 1970) in UTC, or the bare number beyond the years 1 to 9999."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime(form)
    except (OverflowError, ValueError, OSError):
        return f"{at_ms:.0f} ms"


def shown_moment(at_ms: int) -> str:
    """Return a time as `shown_time` does, with its date and milliseconds."""
    text = shown_time(at_ms, "%Y-%m-%d %H:%M:%S.%f")
    return text if text.endswith("ms") else text[:-3]
