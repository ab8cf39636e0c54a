"""`InferenceSession`: onnxruntime's interface over a fuseline program, so that a script changes one import."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from fuseline.arguments import key_list, thread_count, wrong
from fuseline.border import border, coded
from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.interop import onnx_host
from fuseline.interop.session_options import PROVIDER
from fuseline.runtime import Session, TensorSpec
from fuseline.runtime.artifact import ARTIFACT_SUFFIX, MAGIC, artifact_from_bytes, read_artifact
from fuseline.runtime.background import in_background
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.sizes import symbol_of

if TYPE_CHECKING:
    from concurrent.futures import Future

onnx_host.install()

_TYPE_NAMES = {"float32": "float", "float64": "double"}
_OPTIONS = frozenset(option.name for option in fields(CompileOptions)) - {"threads", "emit"}


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output as onnxruntime describes it: `type` is like `tensor(float)`, a free extent of `shape` is its
    name."""

    name: str
    type: str
    shape: list[int | str | None]


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """What the model says of itself, under onnxruntime's names."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict[str, str])


def _node_arg(spec: TensorSpec) -> NodeArg:
    shape = [dim if isinstance(dim, int) else symbol_of(dim) for dim in spec.shape]
    type_ = spec.type or f"tensor({spec.dtype})"
    for ours, theirs in _TYPE_NAMES.items():
        type_ = type_.replace(f"({ours})", f"({theirs})")
    return NodeArg(spec.name, type_, shape)


class InferenceSession:
    """A drop-in for `onnxruntime.InferenceSession`.

    Args:
        path_or_bytes: an ONNX file, a .fuse artifact, or the bytes of either.
        sess_options: anything with `intra_op_num_threads` (0: all processors); the rest of it is ignored.
        providers, provider_options: accepted and ignored: the program runs on the CPU.
        trusted: public keys, of which one must have signed the artifact (`fuseline.load`).
        more: arguments of `fuseline.compile` (not with an artifact); what else onnxruntime takes is ignored.

    Raises FuselineError as `fuseline.compile` and `fuseline.load` do, E0501 for a compile option given with an
    artifact.
    """

    @border("open")
    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: Any = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        *,
        trusted: Sequence[Any] | None = None,
        **more: Any,
    ) -> None:
        del providers, provider_options
        self._options = sess_options
        chosen = {name: value for name, value in more.items() if name in _OPTIONS}
        self._session = _session(path_or_bytes, _threads(sess_options), key_list(trusted), chosen)
        self._dtypes = {
            spec.name: None if spec.slot is not None else dtype_named(spec.dtype) for spec in self._session.inputs
        }

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Any]:
        """The outputs named, all for None and for no names. Lists become arrays of the input's dtype.

        Raises FuselineError: E0201 to E0204 for the feeds, E0205 for an unknown output.
        """
        del run_options
        try:
            outputs = self._session.run(self._feeds(input_feed))
        except Exception as error:  # noqa: BLE001 - the border, in line: this is the hot path
            raise coded(error, "run") from error.__cause__ if isinstance(error, FuselineError) else error
        return list(outputs.values()) if not output_names else _chosen(outputs, output_names)

    def _feeds(self, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
        """The feeds as the runtime takes them; those that are arrays as they are."""
        if not isinstance(feeds, Mapping) or all(isinstance(value, np.ndarray) for value in feeds.values()):  # pyright: ignore[reportUnnecessaryIsInstance]
            return feeds
        return {name: _array(name, value, self._dtypes.get(name)) for name, value in feeds.items()}

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], object],
        user_data: Any = None,
        run_options: Any = None,
    ) -> None:
        """`run` in the background; then `callback(outputs, user_data, error)` there, where `error` is empty if all went
        well. As many runs go on as there are processors; others wait their turn."""

        def tell(done: Future[list[Any]]) -> None:
            problem = done.exception()
            callback([] if problem else done.result(), user_data, "" if problem is None else str(problem))

        in_background(self.run, output_names, input_feed, run_options).add_done_callback(tell)

    def get_inputs(self) -> list[NodeArg]:
        """Name, shape and type of every input."""
        return [_node_arg(spec) for spec in self._session.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """Name, shape and type of every output."""
        return [_node_arg(spec) for spec in self._session.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """None: weights are compiled in."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """Producer, graph name, version, descriptions and the model's own key-value pairs."""
        artifact = self._session.artifact
        known: Mapping[str, Any] = artifact.metadata.get("onnx", {})
        return ModelMetadata(**{item.name: known[item.name] for item in fields(ModelMetadata) if item.name in known})

    def get_session_options(self) -> Any:
        """The options that the session was made with."""
        return self._options

    def get_providers(self) -> list[str]:
        """What onnxruntime calls a program on the CPU."""
        return [PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """No options."""
        return {PROVIDER: {}}

    def set_providers(
        self, providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None
    ) -> None:
        """Accepted and ignored."""

    def enable_fallback(self) -> None:
        """Accepted and ignored: there is one provider."""

    def disable_fallback(self) -> None:
        """Accepted and ignored: there is one provider."""

    def io_binding(self) -> NoReturn:
        """Raises FuselineError (E0501): results are fresh arrays, feeds are read in place."""
        raise FuselineError(
            "E0501",
            "binding inputs and outputs is not supported",
            hint="call run: it reads arrays in place and copies nothing",
        )

    def run_with_iobinding(self, iobinding: Any, run_options: Any = None) -> NoReturn:
        """Raises FuselineError (E0501), as `io_binding` does."""
        self.io_binding()

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, Any], run_options: Any = None
    ) -> NoReturn:
        """Raises FuselineError (E0501): `run` takes values of onnxruntime and answers arrays."""
        raise FuselineError(
            "E0501", "results cannot be values of onnxruntime", hint="call run: it takes them and answers NumPy arrays"
        )

    def end_profiling(self) -> NoReturn:
        """Raises FuselineError (E0501): profiles are the bench command's."""
        raise FuselineError(
            "E0501", "a session writes no profile", hint="`fuseline bench MODEL --per-dispatch` times every dispatch"
        )


def _array(name: str, value: Any, dtype: np.dtype[Any] | None) -> Any:
    """A feed that is no array: a list or number in the input's dtype, or a value of onnxruntime."""
    if isinstance(value, list | tuple | int | float) and dtype is not None:
        try:
            return np.asarray(value, dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise FuselineError("E0204", f"cannot be read as an array of {dtype}: {error}", node=name) from error
    convert = getattr(value, "numpy", None)
    return convert() if callable(convert) and not hasattr(value, "__dlpack__") else value


def _chosen(outputs: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise wrong("output_names", names, "a list of names, or None for all outputs")
    unknown = [name for name in names if name not in outputs]
    if unknown:
        raise FuselineError(
            "E0205", "the model has no such output", node=str(unknown[0]), hint=f"its outputs: {', '.join(outputs)}"
        )
    return [outputs[name] for name in names]


def _threads(sess_options: Any) -> int | None:
    return thread_count(getattr(sess_options, "intra_op_num_threads", 0) or None)


def _session(source: Any, threads: int | None, trusted: Sequence[Any] | None, chosen: Mapping[str, Any]) -> Session:
    from fuseline.api import compile
    from fuseline.call_options import refuse_choices, source_of

    data = bytes(source) if isinstance(source, bytes | bytearray | memoryview) else None
    if data is not None and data.startswith(MAGIC):
        refuse_choices(chosen)
        return Session(artifact_from_bytes(data, trusted=trusted), threads=threads).open()
    if (
        data is None
        and isinstance(source, str | os.PathLike)
        and os.fspath(cast("str", source)).endswith(ARTIFACT_SUFFIX)
    ):
        refuse_choices(chosen)
        return Session(read_artifact(cast("str", source), trusted=trusted), threads=threads).open()
    if trusted is not None:
        raise FuselineError(
            "E0501", "trusted is for artifacts: a model is not signed", hint="compile it, and sign the artifact"
        )
    return cast(Session, compile(source_of(source), threads=threads, **chosen).session)
