"""Windows channel by channel, and over groups of channels."""
