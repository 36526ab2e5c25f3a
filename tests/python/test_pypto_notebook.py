# SPDX-License-Identifier: Apache-2.0
"""The notebook of examples/python, executed without a browser."""

import re
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"


def test_notebook(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    # The kernel's Python is the one that runs the tests, whatever is registered on the machine.
    spec = tmp_path / "kernels" / "python3"
    spec.mkdir(parents=True)
    command = f'["{sys.executable}", "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]'
    (spec / "kernel.json").write_text(f'{{"argv": {command}, "display_name": "Python 3", "language": "python"}}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    notebook = nbformat.read(EXAMPLES / "tour.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells), "clear the outputs before committing"
    client.NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(tmp_path))
    pages = [
        output.data["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    assert len(pages) == 2
    # The picture is in the page itself: nothing is loaded from elsewhere.
    for page in pages:
        assert page.startswith("<iframe srcdoc=") and "vector_add" in page or "matmul" in page
        assert not re.search(r"(src|href)=(&quot;|\")https?:", page)
