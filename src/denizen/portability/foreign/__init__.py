"""Agents and conversations of other programs, translated into files that `denizen import` takes."""
