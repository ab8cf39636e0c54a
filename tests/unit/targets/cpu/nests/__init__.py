"""The stage-scheduled families (loop nest, elementwise, rows) on dispatches written as text."""
