"""The rewrites, a file each: `NAME`, and `apply(editor)`, which answers whether it changed something."""
