"""A small linker: ELF object files -> one position-independent image that the runtime can map without LLVM.

The image is closed: it imports nothing, holds no writable data, and refers to itself relative to the program counter.
The only words that depend on where it is mapped are absolute pointers in constant tables and in the global offset
table; they are listed as `Fixup`s (the loader adds its base). Objects are linked independently of each other: equal
symbol names in two objects do not meet.

Relocations: what LLVM emits for position-independent code in the small model, for x86-64 (System V ABI, AMD64
supplement, table 4.9) and AArch64 (ELF for the Arm 64-bit architecture, section 5.7).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fuseline.errors import FuselineError

SECTION_ALIGNMENT = 64
"""Least alignment of a section in the image: one cache line."""

LARGEST_SECTION = 1 << 30
"""Bytes; more than the small code model reaches is a damaged object."""

_PAGE = 4096
_MACHINES = {62: "x86_64", 183: "aarch64"}
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _REL = 1, 2, 4, 8, 9
_WRITE, _ALLOC, _EXECUTE, _TLS = 1, 2, 4, 0x400
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2
_DROPPED = (".eh_frame", ".note", ".comment", ".llvm_addrsig", ".debug")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")


@dataclass(frozen=True, slots=True)
class Fixup:
    """The 64-bit word at `offset` must hold the address of `target` (both bytes from the start of the image)."""

    offset: int
    target: int


@dataclass(frozen=True, slots=True)
class Image:
    """Linked code: bytes, where each object's global symbols are (one mapping per object), and the words to fix on
    loading."""

    machine: str
    code: bytes
    symbols: tuple[dict[str, int], ...]
    fixups: tuple[Fixup, ...]


@dataclass(slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    base: int = -1


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    section: int
    value: int
    is_global: bool


@dataclass(slots=True)
class _Builder:
    machine: str = ""
    code: bytearray = field(default_factory=bytearray)
    symbols: list[dict[str, int]] = field(default_factory=list[dict[str, int]])
    fixups: list[Fixup] = field(default_factory=list[Fixup])

    def append(self, data: bytes, alignment: int) -> int:
        self.code += bytes(-len(self.code) % max(alignment, SECTION_ALIGNMENT))
        base = len(self.code)
        self.code += data
        return base

    def global_offset_slot(self, slots: dict[int, int], target: int) -> int:
        if target not in slots:
            slots[target] = self.append(bytes(8), 8)
            self.fixups.append(Fixup(slots[target], target))
        return slots[target]


def link_image(objects: Sequence[bytes]) -> Image:
    """Link ELF relocatable objects for one machine into an image.

    Raises FuselineError (E0404) for a file that is not an x86-64 or AArch64 object, an undefined symbol, writable or
    thread-local data, or a relocation that the position-independent small code model does not emit.
    """
    builder = _Builder()
    for data in objects:
        try:
            _link_object(builder, data)
        except (struct.error, IndexError, ValueError, OverflowError) as error:
            raise _refuse(f"object file is malformed: {error}") from error
    return Image(
        builder.machine,
        bytes(builder.code),
        tuple(builder.symbols),
        tuple(sorted(builder.fixups, key=lambda f: f.offset)),
    )


def _refuse(message: str) -> FuselineError:
    return FuselineError("E0404", message, hint="kernels must be closed: no external symbols, no writable data")


def _link_object(builder: _Builder, data: bytes) -> None:
    machine = _machine(data)
    if builder.machine not in ("", machine):
        raise _refuse(f"objects for {builder.machine} and {machine} cannot be linked together")
    builder.machine = machine
    sections = _sections(data)
    _place_sections(builder, sections, data)
    symbols = _symbols(sections, data)
    slots: dict[int, int] = {}
    for place, kind, symbol, addend in _relocations(sections, data):
        target = _address(symbols[symbol], sections)
        _APPLY[machine](builder, slots, kind, place, target, addend)
    builder.symbols.append(
        {s.name: _address(s, sections) for s in symbols if s.is_global and s.name and s.section != _UNDEFINED}
    )


def _machine(data: bytes) -> str:
    if len(data) < 64 or data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 16)[0] != 1:
        raise _refuse("not a 64-bit little-endian ELF object")
    number: int = struct.unpack_from("<H", data, 18)[0]
    if number not in _MACHINES:
        raise _refuse(f"ELF machine {number} is not supported")
    return _MACHINES[number]


def _text_at(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode()


def _sections(data: bytes) -> list[_Section]:
    (start,) = struct.unpack_from("<Q", data, 0x28)
    entry, count, names = struct.unpack_from("<HHH", data, 0x3A)
    rows = [_SECTION.unpack_from(data, start + i * entry) for i in range(count)]
    text = rows[names][4]
    return [_Section(_text_at(data, text + r[0]), r[1], r[2], r[4], r[5], r[6], r[7], r[8]) for r in rows]


def _place_sections(builder: _Builder, sections: list[_Section], data: bytes) -> None:
    kept = [s for s in sections if s.flags & _ALLOC and not s.name.startswith(_DROPPED)]
    for section in sorted(kept, key=lambda s: not s.flags & _EXECUTE):
        writable = section.flags & _WRITE and not section.name.startswith(".data.rel.ro")
        if section.size and (writable or section.flags & _TLS):
            raise _refuse(f"section {section.name} holds writable or thread-local data")
        if section.kind not in (_PROGBITS, _NOBITS):
            continue
        if section.size > LARGEST_SECTION or section.alignment > _PAGE:
            raise _refuse(f"section {section.name} claims {section.size} bytes aligned to {section.alignment}")
        body = (
            data[section.offset : section.offset + section.size] if section.kind == _PROGBITS else bytes(section.size)
        )
        section.base = builder.append(body, section.alignment)


def _symbols(sections: list[_Section], data: bytes) -> list[_Symbol]:
    out: list[_Symbol] = []
    for table in (s for s in sections if s.kind == _SYMTAB):
        text = sections[table.link].offset
        for i in range(table.size // _SYMBOL.size):
            name, info, _, section, value, _ = _SYMBOL.unpack_from(data, table.offset + i * _SYMBOL.size)
            out.append(_Symbol(_text_at(data, text + name), section, value, info >> 4 in (1, 2)))
    return out


def _relocations(sections: list[_Section], data: bytes) -> Iterator[tuple[int, int, int, int]]:
    for table in sections:
        if table.kind not in (_RELA, _REL) or sections[table.info].base < 0:
            continue
        if table.kind == _REL:
            raise _refuse("relocations without addends are not supported")
        for i in range(table.size // _RELOCATION.size):
            offset, info, addend = _RELOCATION.unpack_from(data, table.offset + i * _RELOCATION.size)
            yield sections[table.info].base + offset, info & 0xFFFFFFFF, info >> 32, addend


def _address(symbol: _Symbol, sections: list[_Section]) -> int:
    if symbol.section == _UNDEFINED:
        raise _refuse(f"symbol {symbol.name!r} is undefined")
    if symbol.section in (_ABSOLUTE, _COMMON) or sections[symbol.section].base < 0:
        raise _refuse(f"symbol {symbol.name!r} is not in a section of the image")
    return sections[symbol.section].base + symbol.value


_X86_64, _X86_PC32, _X86_PLT32, _X86_PC64 = 1, 2, 4, 24
_X86_GOT = (9, 41, 42)


def _apply_x86_64(builder: _Builder, slots: dict[int, int], kind: int, place: int, target: int, addend: int) -> None:
    if kind == _X86_64:
        builder.fixups.append(Fixup(place, target + addend))
    elif kind in (_X86_PC32, _X86_PLT32):
        struct.pack_into("<i", builder.code, place, target + addend - place)
    elif kind == _X86_PC64:
        struct.pack_into("<q", builder.code, place, target + addend - place)
    elif kind in _X86_GOT:
        struct.pack_into("<i", builder.code, place, builder.global_offset_slot(slots, target) + addend - place)
    else:
        raise _refuse(f"x86-64 relocation {kind} is not supported")


_ARM_ABS64, _ARM_PREL64, _ARM_PREL32, _ARM_ADR_LO21, _ARM_ADR_PAGE, _ARM_ADD = 257, 260, 261, 274, 275, 277
_ARM_LOADS = {278: 0, 284: 1, 285: 2, 286: 3, 299: 4}
_ARM_BRANCHES = {279: (14, 5), 280: (19, 5), 282: (26, 0), 283: (26, 0)}
_ARM_GOT_PAGE, _ARM_GOT_LOW = 311, 312


def _apply_aarch64(builder: _Builder, slots: dict[int, int], kind: int, place: int, target: int, addend: int) -> None:
    value = target + addend
    if kind == _ARM_ABS64:
        builder.fixups.append(Fixup(place, value))
    elif kind in (_ARM_PREL32, _ARM_PREL64):
        struct.pack_into("<i" if kind == _ARM_PREL32 else "<q", builder.code, place, value - place)
    elif kind in (_ARM_GOT_PAGE, _ARM_GOT_LOW):
        slot = builder.global_offset_slot(slots, target) + addend
        _insert(builder.code, place, _arm_page(place, slot) if kind == _ARM_GOT_PAGE else _arm_low(slot, 3))
    else:
        _insert(builder.code, place, _arm_bits(kind, place, value))


def _arm_bits(kind: int, place: int, value: int) -> int:
    """The bits that relocation `kind` puts into an instruction at `place` that refers to `value`."""
    if kind == _ARM_ADR_PAGE:
        return _arm_page(place, value)
    if kind == _ARM_ADR_LO21:
        return _arm_adr(value - place)
    if kind == _ARM_ADD:
        return _arm_low(value, 0)
    if kind in _ARM_LOADS:
        return _arm_low(value, _ARM_LOADS[kind])
    if kind in _ARM_BRANCHES:
        return _arm_branch(value - place, *_ARM_BRANCHES[kind])
    raise _refuse(f"AArch64 relocation {kind} is not supported")


def _arm_adr(value: int) -> int:
    if not -(1 << 20) <= value < 1 << 20:
        raise _refuse("AArch64 address is out of reach")
    return ((value & 3) << 29) | (((value >> 2) & 0x7FFFF) << 5)


def _arm_page(place: int, value: int) -> int:
    return _arm_adr(value // _PAGE - place // _PAGE)


def _arm_low(value: int, shift: int) -> int:
    low = value % _PAGE
    if low & ((1 << shift) - 1):
        raise _refuse("AArch64 load of a misaligned symbol")
    return (low >> shift) << 10


def _arm_branch(distance: int, bits: int, position: int) -> int:
    if distance & 3 or not -(1 << (bits + 1)) <= distance < 1 << (bits + 1):
        raise _refuse("AArch64 branch is out of reach")
    return ((distance >> 2) & ((1 << bits) - 1)) << position


def _insert(code: bytearray, place: int, bits: int) -> None:
    (word,) = struct.unpack_from("<I", code, place)
    struct.pack_into("<I", code, place, word | bits)


_APPLY = {"x86_64": _apply_x86_64, "aarch64": _apply_aarch64}
