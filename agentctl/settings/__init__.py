"""The user's configuration in layers, each value with its source; edits keep comments."""
