"""How an answer is laid out: its Markdown blocks, and the parts that are no prose."""
