"""The loop: steps, and the one funnel for every tool call."""
