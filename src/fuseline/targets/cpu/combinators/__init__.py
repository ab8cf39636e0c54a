"""What kernels are put together from: each combinator emits a loop (or takes one apart) over the kernel IR and calls a
body inside.

    split      an axis in tiles of two heights, a grid in blocks
    peel       the tiles at the edges of an axis by themselves
    tail       whole panels in a loop, the narrower one at the end
    lanes      an axis in whole vectors, then what remains; what each lane keeps put together
    unroll     some iterations written out in each round
    stage      values that wait in scratch, so that what follows is there once
    prefetch   cache lines asked for some steps ahead

None of them knows what is computed; families compose them (`families/root/`).
"""
