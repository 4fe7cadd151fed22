"""The same trial for a peer: LangGraph with its SQLite checkpointer, in an environment of its own."""
