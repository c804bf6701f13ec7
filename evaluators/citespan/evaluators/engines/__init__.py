"""Where batches of traces are evaluated and written: in this process, or on a Ray cluster."""
