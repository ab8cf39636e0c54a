"""What may be chosen of a kernel in place of what its family chooses, as text and as a value.

    tile=6x32                a register tile of 6 rows by 32 columns (of a window: pixels by channels)
    blocks=2x8x4             what a workgroup covers: lines, tiles along a line, panels of columns
    order=columns            which of rows and columns the grid counts slowest
    image=copied             whether a window reads its image from a copy, or as it is stored
    direct                   a convolution without minimal filtering
    winograd=4               minimal filtering with 4 outputs along each axis
    winograd=4,blocks=28x64  and 28 tiles of the image by passes of 64 columns in a workgroup

Settings are joined by commas. A text without `winograd` asks for the direct way. Whether a machine and a shape take a
choice is for the kernel family to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

Order: TypeAlias = Literal["", "rows", "columns"]
Image: TypeAlias = Literal["", "copied", "stored"]

DEFAULT = "default"
"""What the family chooses."""

DIRECT = "direct"
HINT = "write tile=6x32, blocks=2x8x4, order=rows, image=copied, direct or winograd=4, joined by commas"

_SETTING = re.compile(
    r"(?P<direct>direct)|tile=(?P<tile>[1-9]\d{0,5}x[1-9]\d{0,5})|blocks=(?P<blocks>[1-9]\d{0,8}(?:x[1-9]\d{0,8}){1,2})"
    r"|order=(?P<order>rows|columns)|image=(?P<image>copied|stored)|winograd=(?P<winograd>[1-9]\d?)"
)


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """A choice. `filtering`: outputs per axis of minimal filtering, 0 for the direct way; `tile`: rows and columns;
    `blocks`: what a workgroup covers, two numbers with `filtering`, else three; `order`, `image`: see above; what is
    empty stays as the family has it."""

    filtering: int = 0
    tile: tuple[int, int] | None = None
    blocks: tuple[int, ...] = ()
    order: Order = ""
    image: Image = ""

    @property
    def text(self) -> str:
        """The choice as it is written.

        >>> KernelChoice(tile=(6, 32), order="rows").text
        'tile=6x32,order=rows'
        """
        settings = [f"winograd={self.filtering}"] if self.filtering else []
        settings += [f"tile={_product(self.tile)}"] if self.tile is not None else []
        settings += [f"blocks={_product(self.blocks)}"] if self.blocks else []
        settings += [f"order={self.order}"] if self.order else []
        settings += [f"image={self.image}"] if self.image else []
        return ",".join(settings) or DIRECT


def parse_choice(text: str) -> KernelChoice | None:
    """The choice that `text` spells; None for text that is none.

    >>> parse_choice("winograd=4,blocks=28x64")
    KernelChoice(filtering=4, tile=None, blocks=(28, 64), order='', image='')
    >>> parse_choice("tile=6"), parse_choice("tile=6x32,tile=7x32"), parse_choice("winograd=4,direct")
    (None, None, None)
    """
    found: dict[str, str] = {}
    for setting in text.split(","):
        match = _SETTING.fullmatch(setting.strip())
        if match is None:
            return None
        name, value = next((name, value) for name, value in match.groupdict().items() if value is not None)
        if name in found:
            return None
        found[name] = value
    tile = _numbers(found.get("tile", ""))
    choice = KernelChoice(
        int(found.get("winograd", 0)),
        (tile[0], tile[1]) if tile else None,
        _numbers(found.get("blocks", "")),
        cast(Order, found.get("order", "")),
        cast(Image, found.get("image", "")),
    )
    return choice if _is_one(choice, set(found)) else None


def _is_one(choice: KernelChoice, settings: set[str]) -> bool:
    """Whether the settings go together."""
    if choice.filtering:
        return settings <= {"winograd", "blocks"} and len(choice.blocks) in (0, 2)
    return len(choice.blocks) in (0, 3)


def _product(numbers: Iterable[int] | None) -> str:
    return "x".join(map(str, numbers or ()))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split("x")) if text else ()


def class_id(name: str) -> str:
    """The id in the name of a kernel class, which is all that is matched.

    >>> class_id("convolution.0f9a31c2d4e5"), class_id("0f9a31c2d4e5")
    ('0f9a31c2d4e5', '0f9a31c2d4e5')
    """
    return name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of a class of kernels: the text, and, for what a record asks, why it is `stale`."""

    text: str
    stale: str = ""


@dataclass(frozen=True, slots=True)
class KernelChoices:
    """What is asked of kernels, by the id of their class; `elsewhere`: classes that only machines of other kinds have
    records of, which nothing is asked of; `unread`: why there is nothing of what records say."""

    asked: tuple[tuple[str, Asked], ...] = ()
    elsewhere: frozenset[str] = frozenset()
    unread: str = ""

    def __bool__(self) -> bool:
        return bool(self.asked or self.elsewhere or self.unread)

    def of(self, class_: str) -> Asked | None:
        """What is asked of a class."""
        return next((asked for name, asked in self.asked if name == class_), None)

    def without(self, class_: str) -> KernelChoices:
        """The same, nothing asked of a class."""
        return KernelChoices(tuple(one for one in self.asked if one[0] != class_), self.elsewhere, self.unread)

    def over(self, other: KernelChoices) -> KernelChoices:
        """Both, where they speak of the same class these."""
        merged = {**dict(other.asked), **dict(self.asked)}
        elsewhere = (other.elsewhere | self.elsewhere).difference(merged)
        return KernelChoices(tuple(sorted(merged.items())), elsewhere, self.unread or other.unread)


NO_CHOICES = KernelChoices()
"""Nothing is asked of any."""


def given_choices(texts: Mapping[str, str]) -> KernelChoices:
    """The choices in a mapping from names of classes to texts, those of `default` aside."""
    found = {class_id(name): Asked(text) for name, text in texts.items() if text != DEFAULT}
    return KernelChoices(tuple(sorted(found.items())))
