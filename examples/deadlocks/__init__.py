"""Five programs that hang, or may hang: each is an example with one small mistake. Run one and read its report."""
