"""Events to a person or a program: rich, plain, JSON, JSONL; approval prompts."""
