"""A hub model is planned before its download: a real server on loopback counts every byte that is asked of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gezel_rules.catalog.references import parse_reference
from gezel_rules.cli import main
from gezel_rules.errors import BadInput, TransferFailed
from gezel_rules.gguf.files import parse_growing
from gezel_rules.store.elsewhere import look
from gezel_rules.store.web import Web

from .hub_server import File, Server

HEADERS = Path(__file__).parent.parent / "data" / "headers"
REPO, NAME = "someone/Llama-3.2-1B-GGUF", "Llama-3.2-1B-Q4_K_M.gguf"


class Sparse(bytes):
    """A header, then zeros up to the size that its tensors need: nothing of that size is kept in memory."""

    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> bytes:  # type: ignore[override]
        start, end = part.start or 0, self.size if part.stop is None else part.stop
        head = bytes(self)[start:end] if start < bytes.__len__(self) else b""
        return head + bytes(end - start - len(head))


def model_file(shape: str) -> Sparse:
    head = gzip.decompress((HEADERS / f"{shape}.gguf.head.gz").read_bytes())
    header = parse_growing(lambda count: (head[:count], None), shape)
    last = header.tensors[-1]
    data = Sparse(head)
    data.size = header.data_offset + last.offset + last.nbytes
    return data


@pytest.fixture
def hub(server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Serves a repository of these files."""
    monkeypatch.setenv("HF_ENDPOINT", server.base)

    def serve(repo: str = REPO, **files: bytes) -> None:
        named = {name.replace("__", "-") + ".gguf": data for name, data in files.items()}
        listed = [{"type": "file", "path": name, "size": len(data)} for name, data in named.items()]
        server.files[f"/api/models/{repo}/tree/main"] = File(json.dumps(listed).encode())
        for name, data in named.items():
            server.files[f"/{repo}/resolve/main/{name}"] = File(data, etag='"1"')

    return serve


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("store", "state", "config", "cache"):
        monkeypatch.setenv(f"GEZEL_{name.upper()}", str(tmp_path / name))
    return tmp_path


@pytest.mark.parametrize("model", [f"{REPO}:Q4_K_M", f"hf.co/{REPO}:q4_k_m", f"https://huggingface.co/{REPO}"])
def test_a_hub_model_is_planned_before_its_download(
    hub, server: Server, place: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = model_file("llama-3.2-1b")
    hub(**{"Llama__3.2__1B__Q4_K_M": data})
    assert main(["plan", model, "--host", "rtx-4090", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    path = plan["argv"][plan["argv"].index("--model") + 1]
    assert path.startswith(str(place / "store")) and path.endswith(f"/{NAME}")
    assert "--ctx-size" in plan["argv"]
    assert not (place / "store").exists()
    asked = server.gets(f"/{REPO}/resolve/main/{NAME}")
    assert asked and all("Range" in seen.headers for seen in asked)
    assert server.sent[f"/{REPO}/resolve/main/{NAME}"] <= 1 << 20 < len(data)


def test_the_plan_is_that_of_the_file_itself(hub, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hub(**{"Llama__3.2__1B__Q4_K_M": model_file("llama-3.2-1b")})
    main(["plan", f"{REPO}:Q4_K_M", "--host", "rtx-4090", "--json", "--set", "window=8192"])
    remote = json.loads(capsys.readouterr().out)
    main(["plan", "llama-3.2-1b", "--host", "rtx-4090", "--json", "--set", "window=8192"])
    described = json.loads(capsys.readouterr().out)
    for flag in ("--ctx-size", "--parallel", "--cache-type-k", "--n-gpu-layers"):
        values = [plan["argv"][plan["argv"].index(flag) + 1] for plan in (remote, described)]
        assert values[0] == values[1], flag


def test_a_server_without_ranges_is_read_no_further_than_the_header(hub, server: Server, place: Path) -> None:
    hub(**{"Llama__3.2__1B__Q4_K_M": model_file("llama-3.2-1b")})
    server.files[f"/{REPO}/resolve/main/{NAME}"].ranges = False
    _, _, model = look(parse_reference(REPO), Web(), {})
    assert model.format == "GGUF"
    assert server.sent[f"/{REPO}/resolve/main/{NAME}"] < 64 << 20


def test_a_header_longer_than_the_first_piece_is_read_on(
    hub, server: Server, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gezel_rules.engines.llama_cpp import family

    monkeypatch.setattr(family, "FIRST_PIECE", 1000)
    monkeypatch.setattr("gezel_rules.gguf.files._GROWTH", 1000)
    hub(**{"Llama__3.2__1B__Q4_K_M": model_file("llama-3.2-1b")})
    look(parse_reference(REPO), Web(), {})
    ranges = [seen.headers["Range"] for seen in server.gets(f"/{REPO}/resolve/main/{NAME}")]
    assert len(ranges) > 2 and ranges[0] == "bytes=0-999" and ranges[1].startswith("bytes=1000-")


@pytest.mark.parametrize("fault", [("status", 404), ("shift", 7), "hang-up"])
def test_a_server_that_fails_is_named_in_one_line(
    hub, server: Server, place: Path, fault: object, capsys: pytest.CaptureFixture[str]
) -> None:
    hub(**{"Llama__3.2__1B__Q4_K_M": model_file("llama-3.2-1b")})
    server.files[f"/{REPO}/resolve/main/{NAME}"].faults = [fault] * 9
    with pytest.raises(TransferFailed):
        look(parse_reference(REPO), Web(), {})
    server.files[f"/{REPO}/resolve/main/{NAME}"].faults = [fault] * 9
    assert main(["plan", REPO, "--host", "rtx-4090"]) == 2
    said = capsys.readouterr().err
    assert "is not installed: fetch it first" in said and said.count("\n") == 1


def test_what_is_no_model_is_said_before_a_download(hub, place: Path) -> None:
    hub(**{"Llama__3.2__1B__Q4_K_M": b"<html>" * 100})
    with pytest.raises(BadInput, match="not a GGUF"):
        look(parse_reference(REPO), Web(), {})
