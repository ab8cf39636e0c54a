"""How each `tensor` op that computes is written as a structured op."""
