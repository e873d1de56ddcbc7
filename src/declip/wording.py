"""Words of others made fit to be printed; imports nothing, so that messages come at once."""

__all__ = ["one_line"]


def one_line(text: str) -> str:
    """Return a text without line breaks and other characters that a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
