"""A client without any library: JSON lines over the daemon's socket, which is named by DWELL_SOCKET. Start from here in a
language that has none."""

import itertools
import json
import os
import socket


class Dwell:
    """A connection. Notifications that come while an answer is waited for are kept for `event`."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb")
        self.ids = itertools.count(1)
        self.events = []
        self.answers = {}

    def send(self, method, **params):
        number = next(self.ids)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        return number

    def read(self):
        line = self.lines.readline()
        if not line:
            raise EOFError("the daemon closed the connection")
        message = json.loads(line)
        if "method" in message:
            if message["method"] == "session/event":
                self.events.append(message["params"]["result"])
        else:
            self.answers[message["id"]] = message

    def answer(self, number):
        while number not in self.answers:
            self.read()
        message = self.answers.pop(number)
        if "error" in message:
            raise RuntimeError(message["error"])
        return message["result"]

    def call(self, method, **params):
        return self.answer(self.send(method, **params))

    def event(self, kind):
        """The next event of a kind; those before it are passed over."""
        while True:
            while not self.events:
                self.read()
            event = self.events.pop(0)
            if event["type"] == kind:
                return event

    def close(self):
        self.lines.close()
        self.socket.close()


def said(session_events):
    """The texts of messages, put together by their offsets: a piece may come again within a longer one."""
    texts = {}
    for event in session_events:
        if event["type"] == "saying":
            text = texts.get(event["message"], "")
            texts[event["message"]] = text + event["text"][len(text) - event["offset"] :]
    return "".join(texts.values())


def main():
    path = os.environ["DWELL_SOCKET"]
    dwell = Dwell(path)
    hello = dwell.call("initialize", protocol=1, client={"name": "plain.py", "version": "1"})
    assert hello["protocol"] == 1, hello

    session = dwell.call("session/create", cwd=os.getcwd(), provider="script")["id"]
    dwell.call("session/attach", session=session)

    # A turn with a call that has to be allowed.
    script = 'say grün 😀\ndo execute {"command": "echo ran > plain.txt"}\nsay , done'
    dwell.call("turn/start", session=session, text=script)
    asked = dwell.event("approval_asked")
    assert asked["arguments"] == {"command": "echo ran > plain.txt"}, asked
    dwell.call("approval/answer", approval=asked["approval"], answer="allow")
    ended = dwell.event("turn_ended")
    assert ended["status"] == "completed", ended
    history = dwell.call("session/history", session=session)["events"]
    assert said(history) == "grün 😀, done", said(history)
    with open("plain.txt") as made:
        assert made.read() == "ran\n"

    # One that is stopped.
    dwell.call("turn/start", session=session, text="wait 60000")
    dwell.call("turn/cancel", session=session)
    assert dwell.event("turn_ended")["status"] == "cancelled"

    # Several calls under way at once.
    numbers = [dwell.send("session/get", session=session) for _ in range(50)]
    assert all(dwell.answer(number)["id"] == session for number in numbers)

    # The connection goes, and whatever happens meanwhile is there afterwards, once.
    last = dwell.call("session/get", session=session)["seq"]
    dwell.close()
    other = Dwell(path)
    turn = other.call("turn/start", session=session, text="say meanwhile")["turn"]
    other.call("turn/wait", turn=turn)
    other.close()
    dwell = Dwell(path)
    dwell.call("session/attach", session=session, after=last)
    missed = dwell.event("turn_started")
    assert missed["seq"] == last + 1, missed
    assert dwell.event("said")["text"] == "meanwhile"

    # An answer of more than 5 MB.
    piece = "ü" * 4096
    turn = dwell.call("turn/start", session=session, text=f"repeat 640 {piece}")["turn"]
    reply = dwell.call("turn/wait", turn=turn)["reply"]
    assert reply == piece * 640, len(reply)
    dwell.close()
    print("scenario passed")


if __name__ == "__main__":
    main()
