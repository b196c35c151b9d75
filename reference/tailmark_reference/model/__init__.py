"""The pure model: values in, values out. No clock, no file, no randomness."""
