"""SQL text to algebra and back; the only room that knows sqlglot."""
