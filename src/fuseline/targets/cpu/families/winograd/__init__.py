"""Convolutions by minimal filtering."""
