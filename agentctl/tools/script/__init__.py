"""Script tools: Python in a sandbox that can do nothing but call judged host functions.

Nothing here gives a script a way to the machine: each of its calls is an ordinary tool call, judged, asked
about, budgeted and journaled like one of the model's.
"""
