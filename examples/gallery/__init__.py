"""All pictures of the documentation; `python -m examples.gallery` draws them."""
