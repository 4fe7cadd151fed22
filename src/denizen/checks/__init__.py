"""What `denizen.checker` checks, a module for each subject."""
