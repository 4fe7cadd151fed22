"""Prompt profiles: presets, rules, router, add-ons; and the file that they share with rolling memory."""
