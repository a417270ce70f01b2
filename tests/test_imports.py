"""Who may import whom, and what a warm plan leaves alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = (
    "numpy",
    "gguf",
    "jsonschema",
    "psutil",
    "rich",
    "httpx",
    "urllib3",
    "asyncio",
    "ruamel",
    "importlib.metadata",
    "re2",
)
BROUGHT = ("simpleeval", "psutil", "packaging", "jsonschema", "rich", "urllib3", "gguf", "platformdirs", "filelock")


def test_import_contracts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from importlinter.cli import lint_imports

    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename=str(ROOT / ".importlinter"), no_cache=True)
    assert status == 0, capsys.readouterr().out


def test_an_import_upwards_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from importlinter.cli import lint_imports

    monkeypatch.chdir(ROOT)
    upside_down = (
        (ROOT / ".importlinter")
        .read_text()
        .replace("    decisions | logs\n    policy\n", "    policy\n    decisions | logs\n")
    )
    (tmp_path / ".importlinter").write_text(upside_down)
    assert lint_imports(config_filename=str(tmp_path / ".importlinter"), no_cache=True) == 1
    assert "gezel_rules.decisions is not allowed to import gezel_rules.policy" in capsys.readouterr().out


def loaded_by(program: str, cwd: Path) -> set[str]:
    """The modules in memory after a program of our own has run in a fresh interpreter."""
    tail = "\nimport sys\nprint('\\n' + ' '.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program + tail], capture_output=True, text=True, cwd=cwd, check=True)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "program",
    [
        "import gezel_rules",
        "import gezel_rules.cli",
        "from gezel_rules.cli import main; main(['plan', 'qwen3-8b', '--host', 'rtx-4090'])",
    ],
    ids=["package", "command line", "warm plan"],
)
def test_light_to_start(program: str, tmp_path: Path) -> None:
    loaded_by(program, tmp_path)  # fills the caches
    assert sorted(set(HEAVY) & loaded_by(program, tmp_path)) == []


def test_a_wheel_is_built_with_ruamel_alone(tmp_path: Path) -> None:
    """What compiles the policies at build time imports nothing else that an installation brings."""
    program = (
        "import sys\n"
        f"for name in {BROUGHT!r}: sys.modules[name] = None\n"
        "from pathlib import Path\n"
        "from gezel_rules.author.compiled import compile_all\n"
        "from gezel_rules import places\n"
        "places.compiled_dir = lambda: None\n"  # what an installation brings is not copied
        "from gezel_rules.places import policies_dir\n"
        "from gezel_rules.planner.policies import LANGUAGES\n"
        "compile_all(policies_dir(), LANGUAGES, Path('built'))\n"
    )
    loaded_by(program, tmp_path)
    assert sorted(path.name.split("-")[0] for path in (tmp_path / "built").iterdir()) == ["logs", "policies"]
