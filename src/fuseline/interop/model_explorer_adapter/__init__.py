"""Model Explorer's extension for `.fuse` artifacts (`--extensions=fuseline.interop.model_explorer_adapter`); the viewer
imports its `main`."""
