"""What an agent knows: typed cells, the state document, the shared store, the scratchpad, machines.

Everything durable here is a fold over the commands of commits; this package decides what they mean and does
not store them.
"""
