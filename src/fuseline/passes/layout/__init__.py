"""Layout passes: convolutions channels-last, transposes, reshapes and unit dimensions out of the way."""
