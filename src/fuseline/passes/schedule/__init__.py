"""From outlined dispatches to a schedule: order and waves, memory of transients, packed constants."""
