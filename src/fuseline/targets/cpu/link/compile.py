"""Kernels to object code: LLVM text, code generation without IR passes, parallel processes, a cache by content."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from fuseline.cache.folder import cache_folder, private_folder
from fuseline.errors import FuselineError
from fuseline.runtime.files import write_file
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.link.image import link_image
from fuseline.targets.cpu.link.workers import shared
from fuseline.timeline import span

_DIGEST_BYTES = 32

PARALLEL_THRESHOLD = 4
"""Fewer kernels than this are compiled in this process: a fork costs about as much as compiling one (10 ms)."""

_FORMAT = 3  # of cached objects; raised when what is stored changes meaning


def compile_texts(
    texts: Sequence[str], machine: Machine, *, use_cache: bool = True, processes: int | None = None
) -> list[bytes]:
    """One relocatable ELF object per kernel, in order, of its LLVM text; each exports the kernel's symbol and needs no
    other. Equal texts are compiled once.

    Args:
        processes: how many may compile at a time; None for one per CPU this process may run on.
        use_cache: look up and keep objects in the user's cache folder.
    """
    keys = {text: object_key(text, machine) for text in texts}
    objects = {key: cached for key in keys.values() if use_cache and (cached := _read(key)) is not None}
    missing = {key: text for text, key in keys.items() if key not in objects}
    made = _compile_all(list(missing.values()), machine, processes or len(os.sched_getaffinity(0)))
    for key, object_code in zip(missing, made, strict=True):
        objects[key] = object_code
        if use_cache:
            _write(key, object_code)
    return [objects[keys[text]] for text in texts]


def object_key(text: str, machine: Machine) -> str:
    """The content address of an object: its text, its machine and the LLVM that makes it."""
    fields = (str(_FORMAT), llvmlite.__version__, machine.triple, machine.cpu, ",".join(machine.features), text)
    return hashlib.sha256("\0".join(fields).encode()).hexdigest()


# code generation ------------------------------------------------------------------------------------------------------


def emit_object(text: str, machine: Machine) -> bytes:
    """LLVM text to an ELF object in this process. Raises E0901 when LLVM rejects the text, which is our fault."""
    return _target_machine(machine).emit_object(_parsed(text, machine))


def emit_assembly(text: str, machine: Machine) -> str:
    """LLVM text to the assembly of what `emit_object` makes, for people. Raises E0901 as that does."""
    return _target_machine(machine).emit_assembly(_parsed(text, machine))


def _parsed(text: str, machine: Machine) -> Any:
    """The module of LLVM text, for the machine."""
    target_machine = _target_machine(machine)
    try:
        module = llvm.parse_assembly(text)
    except RuntimeError as error:
        raise FuselineError("E0901", f"LLVM rejects a kernel: {error}") from error
    module.triple = machine.triple
    module.data_layout = str(target_machine.target_data)
    return module


@cache
def _target_machine(machine: Machine) -> Any:
    _initialize()
    target = llvm.Target.from_triple(machine.triple)
    return target.create_target_machine(
        cpu=machine.cpu, features=",".join(machine.features), opt=2, reloc="pic", codemodel="small"
    )


@cache
def _initialize() -> None:
    """Once per process. Loop strength reduction took over half of all compile time (7x7x512 convolution: 66 ms with it,
    14 without) and changed no kernel's speed: our addresses are already a base, an index and a constant."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.set_option("fuseline", "-disable-lsr")


def _compile_all(texts: Sequence[str], machine: Machine, processes: int) -> list[bytes]:
    prepare(machine)  # once, before the fork
    longest_first = sorted(
        range(len(texts)), key=lambda i: -len(texts[i])
    )  # code generation is about linear in the text
    made = shared(
        lambda n: _emit_timed(texts[longest_first[n]], machine),
        len(texts),
        processes if len(texts) >= PARALLEL_THRESHOLD else 1,
    )
    objects = dict(zip(longest_first, made, strict=True))
    return [objects[i] for i in range(len(texts))]


def _emit_timed(text: str, machine: Machine) -> bytes:
    with span("code", _first_symbol(text), llvm_bytes=len(text)):
        return emit_object(text, machine)


def _first_symbol(text: str) -> str:
    """What the first function of LLVM text is called."""
    found = re.search(r"^define [^@]*@([\w.$]+)", text, re.MULTILINE)
    return found.group(1) if found else "code"


def prepare(machine: Machine) -> None:
    """Initialise LLVM for `machine` in this process, so that forks of it need not."""
    _target_machine(machine)


# cache ----------------------------------------------------------------------------------------------------------------


def _read(key: str) -> bytes | None:
    """The cached object, or None when there is none; one that is damaged, another key's, or does not link is dropped.

    An entry starts with the digest of its key and of what follows.
    """
    path = cache_folder() / "objects" / key
    try:
        data = path.read_bytes()
    except OSError:
        return None
    object_code = data[_DIGEST_BYTES:]
    if data[:_DIGEST_BYTES] == _digest(key, object_code) and _links(object_code):
        with suppress(OSError):
            os.utime(path)  # what was not needed for longest goes first
        return object_code
    with suppress(OSError):
        path.unlink()
    return None


def _digest(key: str, object_code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + object_code).digest()


def _links(object_code: bytes) -> bool:
    try:
        return bool(link_image([object_code]).symbols[0])
    except FuselineError:
        return False


def _write(key: str, object_code: bytes) -> None:
    """Keep an object; a full or read-only disk only means that it is not kept. Readers see all of it or nothing."""
    content = _digest(key, object_code) + object_code
    with suppress(FuselineError, OSError):
        write_file(private_folder("objects") / key, lambda file: file.write(content), durable=False)
