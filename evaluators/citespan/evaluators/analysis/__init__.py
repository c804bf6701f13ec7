"""What to make of stored evaluations: label tables, reports, comparisons."""
