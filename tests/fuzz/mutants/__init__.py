"""Mutated files: models, artifacts, plans and MLIR text that are nearly right. Each is refused with a code, or right;
none may crash, hang or raise anything else."""
