"""Measurements that decisions are made with."""
