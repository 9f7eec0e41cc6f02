"""A hub of data sets on loopback, with as much of its protocol as the client needs: commits, gates, ranges."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


class FakeHub:
    """Serves `datasets`: id to {commit: {file: bytes}}; `refs` names the commit of each branch."""

    def __init__(self):
        self.datasets: dict[str, dict[str, dict[str, bytes]]] = {}
        self.refs: dict[str, dict[str, str]] = {}
        self.gated: set[str] = set()
        """Data sets whose files are refused without `token`; what they are is told to everybody."""
        self.token = "hf_let_me_in"
        self.tokens: list[str] = []
        """Credentials that came with requests."""
        self.requests: list[str] = []
        self.ranges: list[str] = []
        self.on_file = lambda file: None
        """Called after a file was asked for, before it is sent."""
        self.cuts: list[int] = []
        """Bytes after which the next downloads break off, one entry for each."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    def add(self, name: str, files: dict[str, bytes], *, branch: str = "main", commit: str = "") -> str:
        """Commits `files` as the data set's newest version, as `commit` where that is given; its commit."""
        commit = commit or hashlib.sha1(repr((name, sorted(files.items()))).encode()).hexdigest()
        self.datasets.setdefault(name, {})[commit] = files
        self.refs.setdefault(name, {})[branch] = commit
        return commit

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(hub):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.answer()

            def do_GET(self):
                self.answer()

            def answer(self):
                path = unquote(urlsplit(self.path).path)
                hub.requests.append(f"{self.command} {path}")
                if "Authorization" in self.headers:
                    hub.tokens.append(self.headers["Authorization"])
                if path.startswith("/api/datasets/"):
                    owner, name, *rest = path.removeprefix("/api/datasets/").split("/", 2)
                    self.info(f"{owner}/{name}", rest[0].removeprefix("revision/") if rest else "main")
                else:
                    owner, name, _, rest = path.removeprefix("/datasets/").split("/", 3)
                    revision, file = rest.split("/", 1)
                    self.file(f"{owner}/{name}", revision, file)

            def commit(self, name, revision):
                if name not in hub.datasets:
                    return self.refuse(401, "RepoNotFound", "Repository not found")
                commit = hub.refs[name].get(revision, revision)
                if commit not in hub.datasets[name]:
                    return self.refuse(404, "RevisionNotFound", "Invalid rev id")
                return commit

            def info(self, name, revision):
                commit = self.commit(name, revision)
                if commit:
                    files = [{"rfilename": file} for file in hub.datasets[name][commit]]
                    self.send(json.dumps({"id": name, "sha": commit, "siblings": files}).encode())

            def file(self, name, revision, file):
                commit = self.commit(name, revision)
                if not commit:
                    return
                if name in hub.gated and self.headers.get("Authorization") != f"Bearer {hub.token}":
                    self.refuse(401, "GatedRepo", "Access to this dataset is restricted")
                    return
                content = hub.datasets[name][commit].get(file)
                if content is None:
                    self.refuse(404, "EntryNotFound", "Entry not found")
                    return
                hub.on_file(file)
                etag = hashlib.sha256(content).hexdigest()
                headers = {"X-Repo-Commit": commit, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
                asked = self.headers.get("Range")
                if asked and self.command == "GET":
                    hub.ranges.append(asked)
                    start = int(asked.removeprefix("bytes=").split("-")[0])
                    headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
                    self.send(content[start:], 206, headers)
                else:
                    self.send(content, 200, headers)

            def send(self, body, status=200, headers=()):
                self.send_response(status)
                for key, value in dict(headers).items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    if hub.cuts and "X-Repo-Commit" in dict(headers):
                        body = body[: hub.cuts.pop(0)]
                        self.close_connection = True
                    self.wfile.write(body)

            def refuse(self, status, code, message):
                self.send(b"{}", status, {"X-Error-Code": code, "X-Error-Message": message})

        return Handler
