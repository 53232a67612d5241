"""Cloud files and the other described files: their syntax, their entries, and saving."""
