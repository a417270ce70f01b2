"""A program with llama-server's manners and whatever fault a test asks for: ``python fake_engine.py FAULT… FLAGS…``.

Faults: ``slow=S`` loads for S seconds, ``crash=N`` exits with N while loading, ``oom`` prints a CUDA out-of-memory and
exits 1, ``oom-above=N`` does so for a window above N tokens, ``deaf`` ignores SIGTERM, ``child`` starts a deaf child,
``dies=N`` answers N pieces and aborts, ``silent`` never listens, ``endless`` answers without end, ``stranger`` takes
any key, ``refuses`` answers requests with an error, ``refuses=WORD`` those that say it, ``blabs`` prints its key,
``lies=PORT`` claims to listen there before it does elsewhere, ``packs=N`` dies of signal N while loading and
``packs-late=N`` with the first token, both unless ``--no-repack`` is among the flags, ``drips`` answers a byte a
second, ``chatty=N`` prints N lines before it listens, ``complains`` says that some file is not there, and goes on.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULTS = dict(word.partition("=")[::2] for word in sys.argv[1:] if not word.startswith("-"))
KEY = os.environ.get("LLAMA_API_KEY", "")
READY = threading.Event()


def die_of(fault: str) -> None:
    """Die of a fault's signal, as an engine whose packed weights need what the machine withholds."""
    if fault in FAULTS and "--no-repack" not in sys.argv:
        os.kill(os.getpid(), int(FAULTS[fault]))
        time.sleep(60)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def reply(self, status: int, body: dict[str, object]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refused(self) -> bool:
        if not READY.is_set():
            self.reply(503, {"error": {"message": "Loading model"}})
            return True
        if self.path != "/health" and "stranger" not in FAULTS and self.headers["Authorization"] != f"Bearer {KEY}":
            self.reply(401, {"error": {"message": "Invalid API Key"}})
            return True
        return False

    def do_GET(self) -> None:
        if "drips" in FAULTS:
            for byte in b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8":
                self.wfile.write(bytes([byte]))
                time.sleep(1)
        if not self.refused():
            self.reply(200, {"status": "ok"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refused():
            return
        words = body["prompt"] if "prompt" in body else " ".join(m["content"] for m in body["messages"])
        if "refuses" in FAULTS and FAULTS["refuses"] in words:
            self.reply(400, {"error": {"message": "the request exceeds\nthe available context size"}})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        die_of("packs-late")
        said = itertools.cycle(words.split()) if "endless" in FAULTS else words.split()
        for number, word in enumerate(said):
            if FAULTS.get("dies") == str(number):
                os.abort()
            self.wfile.write(f"data: {json.dumps({'choices': [{'text': word + ' '}]})}\n\n".encode())
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")


def window() -> int:
    """Tokens of all slots that the flags ask for; 0 when they do not say."""
    return next((int(after) for flag, after in itertools.pairwise(sys.argv) if flag in ("-c", "--ctx-size")), 0)


def main() -> None:
    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    if "deaf" in FAULTS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "child" in FAULTS:
        code = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", code])
    if "blabs" in FAULTS:
        say(f"api key: {KEY}")
    if "lies" in FAULTS:
        say(f"listening on http://127.0.0.1:{FAULTS['lies']}")
    if "oom" in FAULTS or window() > float(FAULTS.get("oom-above", "inf")):
        say(
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9000.00 MiB on device 0:"
            " cudaMalloc failed: out of memory"
        )
        say("llama_model_load: error loading model: unable to allocate CUDA0 buffer")
        sys.exit(1)
    if "complains" in FAULTS:
        say("0.00.1 E gguf_init_from_file: failed to open GGUF file '/no/drafter.gguf' (No such file or directory)")
    die_of("packs")
    if "silent" in FAULTS:
        time.sleep(600)
    port = int(sys.argv[sys.argv.index("--port") + 1]) if "--port" in sys.argv else 0
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    if "crash" in FAULTS:
        say("0.00.100.000 E srv    load_model: failed to load model")
        sys.exit(int(FAULTS["crash"] or 1))
    time.sleep(float(FAULTS.get("slow", 0)))
    for number in range(int(FAULTS.get("chatty", 0))):
        say(f"0.00.100.000 I srv          load: {number}")
    READY.set()
    say(f"0.00.100.000 I srv          init: listening on http://127.0.0.1:{server.server_port}")
    while True:
        time.sleep(0.05)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    main()
