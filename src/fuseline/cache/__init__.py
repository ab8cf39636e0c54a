"""What compiles leave for later ones: finished programs and object code, found by content (docs/cache.md).

    $FUSELINE_CACHE_DIR/
      objects/   a kernel's object code, by its LLVM text and machine           (targets/cpu/link/compile.py)
      programs/  a finished artifact, by the model's bytes and all that a compile depends on, and what it was made from
      models/    digests of files, by what the file system says of them: who has not changed is not read again

Standard library and `fuseline.runtime` only: a hit imports nothing of the compiler.
"""
