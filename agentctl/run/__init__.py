"""One run: stages around the loop, the recorder, resume, sub-agents."""
