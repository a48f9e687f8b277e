"""Views: selection of the part of a program that a picture shows, and folding of the rest."""
