"""Panels: several advisors answer a person at once, each in a thread of its own."""
