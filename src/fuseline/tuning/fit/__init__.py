"""The cost model learns: dispatches of models are measured, and what their predicted times are made of is fitted to
that."""
