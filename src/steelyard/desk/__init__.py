"""What an operator asks of a whole cloud: what is wrong, what would change, how much fits."""
