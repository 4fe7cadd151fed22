"""Everything that the server sends as JSON: one class for each thing, for the server and the client."""
