"""What the layout and padding passes share: changing the loops of a generic, moving transposes, reshapes and pads past
other ops."""
