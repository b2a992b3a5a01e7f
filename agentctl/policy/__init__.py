"""May it: pure, synchronous rules that judge what a call would do. No I/O."""
