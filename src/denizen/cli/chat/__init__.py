"""`denizen chat`: a conversation in the terminal."""
