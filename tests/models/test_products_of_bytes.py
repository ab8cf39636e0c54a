"""Networks as tools quantise them, on targets that multiply bytes: as many dispatches as on others, and the same bits
where the code runs here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.targets.cpu.isa import cpu_flags, machine
from tests.draws import RNG
from tests.graphs.onnx_text import declared, onnx_model
from tests.graphs.quantized_network import Network

from .test_quantized_networks import NETWORKS

ELEMENTS = [np.uint8, np.int8]


def _runs_here(isa: str) -> bool:
    return cpu_flags().issuperset(machine(isa).needs)


def _network(name: str, element: Any) -> Network:
    network = Network(element, int(RNG.integers(3, 40)), by_channel=bool(RNG.integers(2)))
    NETWORKS[name](network)
    return network


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("name", NETWORKS)
def test_as_many_dispatches(name: str, element: Any, tmp_path: Path):
    """But for a value that is no longer evaluated where it is read, by the price: to store it takes half as long."""
    model, file = _network(name, element).whole(), tmp_path / "bytes.toml"
    file.write_text("multiplies_bytes = true\n")
    wide, narrow = (fuseline.compile(model, target=target, threads=1) for target in ("null", f"null:{file}"))
    assert narrow.stats["dispatches"] <= wide.stats["dispatches"] + 1
    if narrow.stats["dispatches"] > wide.stats["dispatches"]:
        missed = [word for word in narrow.record.decisions if word.verdict == "missed"]
        assert "unprofitable" in {word.code for word in missed if word.rule == "read-in-place"}


WITH_BYTES = pytest.mark.parametrize(
    "isas",
    [
        pytest.param((wide, narrow), marks=[pytest.mark.skipif(not _runs_here(narrow), reason="not on this CPU")])
        for wide, narrow in (("avx512", "avx512vnni"), ("avx2", "avxvnni"))
    ],
)


@WITH_BYTES
@pytest.mark.parametrize("threads", [1, 2])
def test_zero_points_of_the_run(threads: int, isas: tuple[str, str]):
    """Two products of what is quantised by its own range, the second of all that the first one makes."""
    rows, channels = (int(n) for n in RNG.integers(5, 90, 2))
    weights = {name: RNG.integers(-128, 128, (channels, channels)).astype(np.int8) for name in ("v", "w")}
    model = onnx_model(
        f"""({declared({"x": (rows, channels)})}) => (float[] y) {{
          a, as, az = DynamicQuantizeLinear(x)  p = MatMulInteger(a, v, az)  pf = Cast<to=1>(p)  ps = Mul(pf, as)
          b, bs, bz = DynamicQuantizeLinear(ps)  q = MatMulInteger(b, w, bz)  qf = Cast<to=1>(q)  y = Mul(qf, bs) }}""",
        weights,
        opset=20,
    )
    x = RNG.normal(RNG.uniform(-1, 1), 1, (rows, channels)).astype(np.float32)
    wide, narrow = (fuseline.compile(model, target=f"cpu:{isa}", threads=threads).run({"x": x})["y"] for isa in isas)
    np.testing.assert_array_equal(wide, narrow)
    (wanted,) = fuseline.compile(model, target="interpreter").run({"x": x}).values()
    np.testing.assert_allclose(narrow, wanted, rtol=1e-5, atol=1e-5 * float(np.abs(wanted).max()))


@WITH_BYTES
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_bits(name: str, threads: int, element: Any, isas: tuple[str, str]):
    network = _network(name, element)
    model, feeds = network.whole(), {"x": RNG.normal(0, 1, network.shape).astype(np.float32)}
    wide, narrow = (fuseline.compile(model, target=f"cpu:{isa}", threads=threads).run(feeds) for isa in isas)
    for one, other in zip(wide.values(), narrow.values(), strict=True):
        np.testing.assert_array_equal(one, other)
