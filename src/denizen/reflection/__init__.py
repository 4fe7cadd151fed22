"""Reflection: how people feel about what is said, and what an agent's state of mind becomes after its cycles."""
