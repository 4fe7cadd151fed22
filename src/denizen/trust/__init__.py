"""Limits on what an agent may do after reading text from outside: sources of text, and effects that need approval."""
