"""Looking after a house: the same commands on the database of this machine and on a server elsewhere."""
