"""What we measure. Each module is a script that ends with one line of JSON; `python -m bench` runs them all."""
