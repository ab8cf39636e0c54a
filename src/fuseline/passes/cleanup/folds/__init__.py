"""Local simplifications, grouped by the op they look at; `canonicalize` applies them until none applies."""
