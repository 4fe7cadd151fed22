"""The migrations of the schema. `denizen.storage.migrating` runs them."""
