"""Bridges: rooms elsewhere bound to spaces, accounts elsewhere bound to people, and the adapters that reach them."""
