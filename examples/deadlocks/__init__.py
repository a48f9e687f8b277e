"""Five programs with one small mistake each, which hang or may hang. Run one of them and read its report."""
