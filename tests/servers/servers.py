"""Real model servers for the tests: llama.cpp's own (chat completions, Responses, Messages) and one with Ollama's interface in front
of it. Prints one line of JSON with their addresses when both answer, and ends with its standard input. Loopback only.

usage: servers.py MODEL.gguf
"""

import json
import os
import socket
import sys
import tempfile
import threading
import urllib.request

# Whatever the server of Ollama's interface keeps goes away with the test.
HOME = tempfile.TemporaryDirectory()
os.environ["VIPERA_HOME"] = HOME.name

import uvicorn
import xllamacpp
from vipera.server import build_app


def llama(model):
    """llama.cpp's server in this process; gives its base URL."""
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 4096
    params.n_parallel = 1
    params.use_jinja = True
    params.warmup = False
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    return server, server.listening_address


class Behind:
    """What the server of Ollama's interface asks for answers: the other one, with calls in that one's shape."""

    supports_embeddings = False

    def __init__(self, url):
        self.url = url

    def chat(self, messages, stream=False, **options):
        body = {"messages": with_ids(messages), "stream": stream, **options}
        if stream:
            body["stream_options"] = {"include_usage": True}
        request = urllib.request.Request(
            self.url + "/v1/chat/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        answer = urllib.request.urlopen(request, timeout=60)
        if not stream:
            return json.load(answer)
        return chunks(answer)

    def tokenize(self, text):
        return list(text if isinstance(text, bytes) else text.encode())

    def close(self):
        pass


def chunks(answer):
    with answer:
        for line in answer:
            if line.startswith(b"data: ") and line[6:].strip() != b"[DONE]":
                yield json.loads(line[6:])


def with_ids(messages):
    """Calls and results are told apart by their order there, by ids here."""
    out, waiting, count = [], [], 0
    for message in messages:
        message = dict(message)
        calls = []
        for call in message.get("tool_calls") or []:
            count += 1
            waiting.append(f"call_{count}")
            function = dict(call["function"])
            function["arguments"] = json.dumps(function["arguments"])
            calls.append({"id": waiting[-1], "type": "function", "function": function})
        if calls:
            message["tool_calls"] = calls
        if message["role"] == "tool" and waiting:
            message["tool_call_id"] = waiting.pop(0)
        out.append(message)
    return out


def ollama(url):
    """Gives the base URL of Ollama's interface, once it answers."""
    app = build_app(Behind(url), "fixture", protocols=["ollama"])
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    threading.Thread(target=server.run, args=([listener],), daemon=True).start()
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    while not server.started:
        threading.Event().wait(0.01)
    return base


def main():
    server, url = llama(sys.argv[1])
    print(json.dumps({"llama": url, "ollama": ollama(url)}), flush=True)
    sys.stdin.read()
    HOME.cleanup()
    # Its threads need no end of their own.
    os._exit(0)


main()
