"""Ask a person: questions, the hub that answers each once, and what happens when nobody is there."""
