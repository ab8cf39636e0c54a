"""Frontends: a model file becomes linalg on tensors."""
