"""Long runs whose results the book stores; ``python -m experiments`` lists and runs them."""
