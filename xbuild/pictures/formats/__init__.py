"""A picture in each format: svg pages, graphviz, Mermaid, text."""
