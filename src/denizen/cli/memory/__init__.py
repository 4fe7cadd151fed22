"""`denizen memory`: shows and forgets memories, all of them on the local database, or the visible ones on a server."""
