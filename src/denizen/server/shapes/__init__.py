"""The JSON of requests and answers: one module for each subject."""
