"""Limits on what an agent may do after reading text from outside: the text's sources, and which effects need
approval."""
