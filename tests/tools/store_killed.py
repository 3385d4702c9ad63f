#!/usr/bin/env python3
"""One epoch from a store that is killed twenty times meanwhile, and comes back each time: it has the digest of an epoch that nothing disturbed.

    store_killed.py LEAT PHOTOS
"""
import http.server
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

kills_wanted = 20


class ranges(http.server.BaseHTTPRequestHandler):
    """Files of the working directory, by ranges."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, with_body):
        path = pathlib.Path("." + self.path)
        if not path.is_file():
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        size = path.stat().st_size
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = (int(asked[1]), min(int(asked[2]), size - 1)) if asked else (0, size - 1)
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("ETag", f'"{size}"')
        self.end_headers()
        if with_body:
            with path.open("rb") as file:
                file.seek(first)
                self.wfile.write(file.read(last - first + 1))


class server(http.server.ThreadingHTTPServer):
    allow_reuse_address = True
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, *_):
        pass  # Who is gone is gone.


def serve(folder, port):
    """A process of its own. Port 0 is a free one; its first line says which."""
    return subprocess.Popen([sys.executable, __file__, "serve", folder, str(port)], stdout=subprocess.PIPE, text=True)


def digest_of(text):
    return re.search(r"^ *digest +(\w+)", text, re.MULTILINE)[1]


def main(leat, photos):
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([leat, "pack", photos, f"{folder}/train-{{0..3}}.tar"], check=True, stdout=subprocess.DEVNULL)
        store = serve(folder, 0)
        port = store.stdout.readline().strip()
        epoch = [leat, "epoch", f"http://127.0.0.1:{port}/train-{{0..3}}.tar", "--allow-http", "--order", "repeated:30", "--size", "64"]
        began = time.monotonic()
        undisturbed = digest_of(subprocess.run(epoch, check=True, capture_output=True, text=True).stdout)
        took = time.monotonic() - began
        run = subprocess.Popen(epoch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        kills, away, began = 0, 0.0, time.monotonic()
        while kills < kills_wanted and run.poll() is None:
            time.sleep(chance.uniform(0.3, 1) * took / (2 * kills_wanted))
            since = time.monotonic()
            store.kill()
            store.wait()
            kills += 1
            time.sleep(chance.uniform(0, 0.2))
            store = serve(folder, port)
            store.stdout.readline()
            away += time.monotonic() - since
        said = run.communicate()[0]
        store.kill()
        store.wait()
    print(f"undisturbed {took:.2f} s; killed {kills} times, away {away:.2f} s: {time.monotonic() - began:.2f} s")
    if run.returncode != 0 or kills < kills_wanted or digest_of(said) != undisturbed:
        print(f"the run ended with {run.returncode}, wanted the digest {undisturbed}:\n{said}")
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        os.chdir(sys.argv[2])
        with server(("127.0.0.1", int(sys.argv[3])), ranges) as made:
            print(made.server_address[1], flush=True)
            made.serve_forever()
    sys.exit(main(*sys.argv[1:]))
