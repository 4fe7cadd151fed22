"""The steps by which the schema came to be what it is. They are run by `denizen.storage.migrating`."""
