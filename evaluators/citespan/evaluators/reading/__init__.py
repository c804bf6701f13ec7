"""From spans to runs."""
