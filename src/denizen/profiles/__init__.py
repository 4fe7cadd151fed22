"""Prompt profiles: presets of instructions that are added to an agent's own, chosen by rules for each conversation."""
