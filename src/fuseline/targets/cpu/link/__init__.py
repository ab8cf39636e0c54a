"""From kernels to an image that runs: object code, the linker, the native scheduler, the command program."""
