"""Organizations, entities, spaces, members, messages; posting and its fan-out."""
