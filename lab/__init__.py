"""The laboratory: real servers, real clients and real faults, judged by what the clients saw. See docs/proof.md."""
