"""Decide whether passages support a claim."""
