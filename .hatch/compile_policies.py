"""Puts the compiled policies into a wheel, so that the first plan after an installation reads no YAML.

They are a copy, found by the bytes of the files: where one does not fit, the policies are
read as in a checkout.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledPolicies(BuildHookInterface):
    """Compiles ``policies/`` of the source tree when a wheel is built from it."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the compiled sets to the files of the wheel; not to an editable one, whose policies will change."""
        self.made = tempfile.TemporaryDirectory(prefix="gezel-rules-compiled-")
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from gezel_rules.author.compiled import compile_all
            from gezel_rules.planner.policies import LANGUAGES

            compile_all(Path(self.root) / "policies", LANGUAGES, Path(self.made.name))
        except ImportError as missing:
            self.app.display_warning(f"policies are not compiled into the wheel: {missing}")
        for path in Path(self.made.name).iterdir():
            build_data["force_include"][str(path)] = f"gezel_rules/shipped/compiled/{path.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """What was compiled is in the wheel now."""
        self.made.cleanup()
