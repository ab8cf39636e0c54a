"""From outlined dispatches to a schedule: order and waves, memory of transients, packed constants.

How the pieces meet, `kernels` being the target's `CompiledKernel`s by executable symbol:

    schedule  = build_schedule(ctx, module)                                      passes/schedule/build_schedule.py
    constants = pack_constants(schedule, kernels, runtime.memory.reserve)        passes/schedule/pack_constants.py
    artifact  = assemble(schedule, kernels, constants, machine=.., threads=..)   targets/cpu/link/program.py
"""
