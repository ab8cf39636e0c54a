"""What a search may turn, one file per space of `tuning.knob.SPACES`."""
