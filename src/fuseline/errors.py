"""Coded errors: every failure a user can cause is one of these, and each code has a page in `docs/errors/`.

This module imports nothing of fuseline, so that every layer, the runtime included, may raise from it.
"""

from __future__ import annotations

from typing import Any

ERROR_TITLES: dict[str, str] = {
    "E0101": "model file cannot be read",
    "E0102": "not an ONNX model",
    "E0103": "operator is unknown",
    "E0104": "external data lies outside the model's folder",
    "E0105": "model does not pass the ONNX checker",
    "E0106": "operator or attribute is unsupported",
    "E0107": "shape cannot be inferred",
    "E0108": "shape option does not fit the model",
    "E0201": "unknown feed name",
    "E0202": "missing feed",
    "E0203": "feed has the wrong shape",
    "E0204": "feed has the wrong dtype",
    "E0205": "unknown output name",
    "E0206": "feed file cannot be read",
    "E0301": "IR does not parse",
    "E0302": "IR does not verify",
    "E0303": "unknown pass",
    "E0304": "pass option is wrong",
    "E0305": "IR cannot be executed",
    "E0306": "IR holds what is not supported",
    "E0307": "target does not take an op",
    "E0308": "weights beside the IR cannot be used",
    "E0309": "IR has another format version",
    "E0401": "artifact is damaged",
    "E0402": "artifact has another format version",
    "E0403": "artifact needs CPU features that this machine lacks",
    "E0404": "object code cannot be linked",
    "E0405": "memory or threads cannot be had",
    "E0406": "artifact is not signed by a trusted key",
    "E0501": "option is wrong",
    "E0502": "output cannot be written",
    "E0503": "optional dependency is missing",
    "E0601": "outputs differ from the reference",
    "E0602": "outputs do not depend on the inputs",
    "E0603": "the other runtime cannot load the model",
    "E0604": "trial ended its process",
    "E0605": "trial took too long",
    "E0606": "machine is too busy",
    "E0611": "dispatch differs from the interpreter",
    "E0612": "kernel leaves its buffers",
    "E0613": "two runs of a program differ",
    "E0614": "no difference to look for",
    "E0615": "no plan compiles around it",
    "E0701": "fusion plan cannot be read",
    "E0702": "fusion plan does not match the graph",
    "E0703": "fusion plan asks for an illegal group",
    "E0704": "fusion rule is wrong",
    "E0705": "tuning records cannot be read",
    "E0801": "target does not load",
    "E0802": "target is wrong",
    "E0901": "internal error",
    "E1001": "tuning storage cannot be used",
    "E1002": "recorded trials do not fit the search",
    "E1101": "scheduler cannot be reached",
    "E1102": "no worker can take part",
    "E1103": "workers were lost",
    "E1104": "files cannot be sent to a worker",
}


class FuselineError(Exception):
    """A failure with a stable code, the place it happened, and what to do about it.

    Args:
        code: a key of `ERROR_TITLES`.
        message: what went wrong, one sentence, with the values at fault.
        node: the ONNX node, feed, pass or file concerned, as the user knows it.
        hint: what the user can do next.
        phase: what was being done, where that helps: `read`, `layout/fold-unit-dims`, `run`.
    """

    def __init__(
        self, code: str, message: str, *, node: str | None = None, hint: str | None = None, phase: str | None = None
    ) -> None:
        if code not in ERROR_TITLES:
            raise KeyError(code)
        self.code, self.message, self.node, self.hint, self.phase = code, message, node, hint, phase
        super().__init__(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (self.code, self.message, self.node, self.hint, self.phase)

    def __str__(self) -> str:
        where = f" [{self.node}]" if self.node else ""
        phase = f" [in {self.phase}]" if self.phase else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.code}{where}: {self.message}{phase}{hint}"

    def to_json(self) -> dict[str, Any]:
        """The error as one JSON-ready mapping, as printed under `--json`."""
        texts = {"message": self.message, "node": self.node, "hint": self.hint, "phase": self.phase}
        return {"code": self.code, "title": ERROR_TITLES[self.code], **texts}


class MissingPackageError(FuselineError, ImportError):
    """E0503 for a package that is not installed; an ImportError as well, so that what guards an import still does."""


class OutOfMemoryError(FuselineError, MemoryError):
    """E0405 where memory ran out; a MemoryError as well."""


class UnequalSizesError(FuselineError):
    """E0203 for sizes that contradict what a program takes for granted about them."""


def _made_again(code: str, message: str, node: str | None, hint: str | None, phase: str | None) -> FuselineError:
    """What a pickled error is made from, with its parts in order."""
    return FuselineError(code, message, node=node, hint=hint, phase=phase)
