"""The site: pages that are written by hand, and pages made from declarations, staged for Sphinx."""
