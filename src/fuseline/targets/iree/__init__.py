"""IREE: its code generation for our dispatches, and programs as text that it takes."""
