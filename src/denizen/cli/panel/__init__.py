"""`denizen panel`: several advisors at once, from the command line."""
