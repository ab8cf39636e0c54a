"""What one dispatch is, for whoever lowers it: its view, its arms, where its results lie."""
