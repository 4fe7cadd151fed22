"""What this Denizen was told, and where."""
