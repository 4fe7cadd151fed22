"""Agents with their whole lives, and spaces with their messages, as files: out of one house and into another."""
