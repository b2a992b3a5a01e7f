"""What it knows: keys, commits, cells, the state document, shared state, the scratchpad."""
