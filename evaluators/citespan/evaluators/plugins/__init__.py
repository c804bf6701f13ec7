"""citespan inside other evaluation tools."""
