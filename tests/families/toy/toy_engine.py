"""The engine of the toy family: a small HTTP server that chats, counts words, and logs in words of its own."""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KEY = os.environ["TOY_KEY"]
ARGUMENTS = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))


class Handler(BaseHTTPRequestHandler):
    """Answers ``/up``, ``/v1/chat/completions`` and ``/count``; every request needs the key."""

    def do_GET(self) -> None:
        self._end(200 if self._ours() and self.path == "/up" else 401, b"")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._ours():
            self._end(401, b"{}")
        elif self.path == "/count":
            self._end(200, json.dumps({"words": len(body["text"].split())}).encode())
        else:
            event = {"choices": [{"delta": {"content": f"toy says {body['messages'][-1]['content']}"}}]}
            self._end(200, f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode())

    def _ours(self) -> bool:
        return self.headers["Authorization"] == f"Bearer {KEY}"

    def _end(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return None


def main() -> None:
    if "broken" in Path(ARGUMENTS["--model"]).read_text():
        print("toy: cannot digest this model", flush=True)
        sys.exit(4)
    server = ThreadingHTTPServer(("127.0.0.1", int(ARGUMENTS["--port"])), Handler)
    print(f"toy: ears open at http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
