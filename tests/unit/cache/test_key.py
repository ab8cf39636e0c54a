"""The key of a program: equal for equal compiles, another one where anything differs that a compile depends on."""

from pathlib import Path
from typing import Any

import pytest

from fuseline.cache import key
from fuseline.cache.key import program_key
from fuseline.compile_options import CompileOptions
from tests.graphs.onnx_text import onnx_model

MODEL = onnx_model("(float[n, 4] x) => (float[n, 4] y) { y = Relu(x) }")


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))


def _key(source: Any = MODEL, **choices: Any) -> str | None:
    return program_key(source, CompileOptions(**choices))


CHOICES: dict[str, dict[str, Any]] = {
    "target": {"target": "cpu:baseline"},
    "threads": {"threads": 7},
    "shapes": {"shapes": {"n": 3}},
    "bounds": {"shapes": {"n": (1, 3)}},
    "dedup": {"dedup": "none"},
    "passes": {"passes": "cleanup,fusion"},
    "fusion": {"fusion": "none"},
    "numerics": {"numerics": "strict"},
    "plan_strict": {"plan_strict": True},
    "weights": {"weights": "original"},
    "without_rules": {"without_rules": ["row-chain"]},
}


def test_each_choice_has_a_key_of_its_own():
    keys = [_key(), *(_key(**choices) for choices in CHOICES.values())]
    assert None not in keys and len(set(keys)) == len(keys)
    assert _key() == _key(progress=print)


@pytest.mark.parametrize(
    "choices",
    [
        {"target": "interpreter"},
        {"target": "null"},
        {"emit": "fusion"},
        {"verify_each": True},
        {"poison": True},
        {"pass_options": {"cse": {}}},
        {"after_pass": print},
    ],
    ids=str,
)
def test_what_makes_more_or_less_than_a_program_has_none(choices: dict[str, Any]):
    assert _key(**choices) is None


@pytest.mark.parametrize("option", ["plan", "rules"])
def test_files_count_by_content(option: str, tmp_path: Path):
    def given(name: str, text: str) -> dict[str, Any]:
        (tmp_path / name).write_text(text)
        return {option: tmp_path / name if option == "plan" else [tmp_path / name]}

    keys = [_key(**given("a", "1")), _key(**given("b", "1")), _key(**given("a", "2")), _key()]
    assert keys[0] == keys[1] and len(set(keys)) == 3
    assert _key(**{option: tmp_path / "absent" if option == "plan" else [tmp_path / "absent"]}) is None


def test_a_machine_description_counts_by_content(tmp_path: Path):
    path = tmp_path / "m.toml"
    path.write_text("a = 1")
    first = _key(target=f"cpu:{path}")
    path.write_text("a = 2")
    assert first != _key(target=f"cpu:{path}")


def test_a_model_counts_by_content_and_by_how_it_is_read(tmp_path: Path):
    data = MODEL.SerializeToString()
    for name in ("a.onnx", "b.onnx", "c.mlir"):
        (tmp_path / name).write_bytes(data)
    keys = [_key(tmp_path / name) for name in ("a.onnx", "b.onnx", "c.mlir")]
    assert keys[0] == keys[1] != keys[2]
    (tmp_path / "a.onnx").write_bytes(data + b"\0")
    assert _key(tmp_path / "a.onnx") != keys[1] and _key(tmp_path / "absent.onnx") is None
    other = onnx_model("(float[n, 4] x) => (float[n, 4] y) { y = Abs(x) }")
    assert _key() == _key(onnx_model("(float[n, 4] x) => (float[n, 4] y) { y = Relu(x) }")) != _key(other)


def test_packages_sources_and_the_machine_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    keys = [_key()]
    (tmp_path / "packages" / "llvmlite-99.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path / "packages")
    keys.append(_key())
    monkeypatch.setattr(key, "_sources", lambda: "others")
    keys.append(_key())
    monkeypatch.setattr(key, "machine_features", lambda: frozenset({"sse2"}))
    keys.append(_key())
    monkeypatch.setattr(key, "allowed_processors", lambda: list(range(1000)))
    keys.append(_key())
    assert len(set(keys)) == len(keys)


def test_programs_for_iree_are_kept() -> None:
    keys = {_key(target=target) for target in ("cpu", "iree", "iree:vmvx")}
    assert None not in keys and len(keys) == 3


def test_processors_count_where_they_say_how_many_threads_alone(monkeypatch: pytest.MonkeyPatch):
    before = _key(threads=1), _key()
    monkeypatch.setattr(key, "allowed_processors", lambda: range(17))
    assert _key(threads=1) == before[0] and _key() != before[1]
