"""Files: uploaded in chunks, stored once within an organization, attached to messages."""
