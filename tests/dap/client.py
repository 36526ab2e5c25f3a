# SPDX-License-Identifier: Apache-2.0
"""A small client of the Debug Adapter Protocol that believes nothing: every message is validated."""

import json
import os
import pathlib
import queue
import subprocess
import threading

import jsonschema

_SCHEMA = json.loads((pathlib.Path(__file__).parent / "protocol.json").read_text())
_VALIDATORS = {}
TIMEOUT = 60


def validate(message, definition):
    """Raises jsonschema.ValidationError if the message is not what the protocol calls `definition`."""
    if definition not in _VALIDATORS:
        assert definition in _SCHEMA["definitions"], f"protocol.json has no {definition}"
        schema = {"$ref": f"#/definitions/{definition}", "definitions": _SCHEMA["definitions"]}
        _VALIDATORS[definition] = jsonschema.Draft4Validator(schema)
    _VALIDATORS[definition].validate(message)


def _capital(name):
    return name[0].upper() + name[1:]


class Refused(Exception):
    """The server answered a request with success: false."""


class Client:
    """One `ptodbg --dap`. Responses come back from request(); events collect in `events`."""

    def __init__(self, program=None, cwd=None):
        program = program or os.path.join(os.environ["PTO_BIN_DIR"], "ptodbg")
        self.process = subprocess.Popen(
            [program, "--dap"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, cwd=cwd)
        self._incoming = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._seq = 0
        self._server_seq = 0
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        self._reader.join(TIMEOUT)
        self.process.stdout.close()
        self.process.stderr.close()

    # ---- messages

    def _read(self):
        stream = self.process.stdout
        while True:
            length = None
            while True:
                line = stream.readline()
                if not line:
                    self._incoming.put(None)
                    return
                line = line.strip()
                if not line:
                    break
                name, value = line.split(b":")
                assert name == b"Content-Length", line
                length = int(value)
            self._incoming.put(json.loads(stream.read(length)))

    def _next(self):
        message = self._incoming.get(timeout=TIMEOUT)
        assert message is not None, "the server has gone: " + self.process.stderr.read().decode()
        self._server_seq += 1
        assert message["seq"] == self._server_seq
        if message["type"] == "event":
            validate(message, _capital(message["event"]) + "Event")
        elif not message["success"]:
            validate(message, "ErrorResponse")
        else:
            validate(message, _capital(message["command"]) + "Response")
        return message

    def send_raw(self, body):
        """Any bytes as the body of one message."""
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def send(self, command, arguments=None, check=True):
        """Sends a request and returns its number, without waiting."""
        self._seq += 1
        message = {"seq": self._seq, "type": "request", "command": command}
        if arguments is not None:
            message["arguments"] = arguments
        if check:
            validate(message, _capital(command) + "Request")
        self.send_raw(json.dumps(message).encode())
        return self._seq

    def response(self, seq):
        """Waits for the response to request `seq`; Refused with its message if it failed."""
        while True:
            message = self._next()
            if message["type"] == "event":
                self.events.append(message)
                continue
            assert message["request_seq"] == seq
            if not message["success"]:
                raise Refused(message["message"])
            return message.get("body")

    def request(self, command, arguments=None, check=True):
        return self.response(self.send(command, arguments, check))

    def event(self, *names):
        """The next event of one of these names; others before it go to `events`."""
        for i, message in enumerate(self.events):
            if message["event"] in names:
                return self.events.pop(i)
        while True:
            message = self._next()
            assert message["type"] == "event", message
            if message["event"] in names:
                return message
            self.events.append(message)

    def stopped(self):
        message = self.event("stopped", "terminated")
        assert message["event"] == "stopped", message
        return message["body"]

    def text(self, category):
        """What output events of that category have said so far."""
        return "".join(e["body"]["output"] for e in self.events
                       if e["event"] == "output" and e["body"]["category"] == category)

    # ---- what an editor does again and again

    def start(self, before_run=None, **launch):
        """initialize, launch, set breakpoints (before_run), configurationDone."""
        capabilities = self.request("initialize", {"adapterID": "pto", "clientID": "test",
                                                   "supportsInvalidatedEvent": True})
        self.request("launch", launch)
        self.event("initialized")
        result = before_run(self) if before_run else None
        self.request("configurationDone")
        return capabilities, result

    def frames(self, thread):
        return self.request("stackTrace", {"threadId": thread})["stackFrames"]

    def scopes(self, thread):
        """Names of the top frame's scopes with their references."""
        frame = self.frames(thread)[0]["id"]
        return {s["name"]: s["variablesReference"]
                for s in self.request("scopes", {"frameId": frame})["scopes"]}

    def variables(self, reference):
        return {v["name"]: v for v in
                self.request("variables", {"variablesReference": reference})["variables"]}

    def evaluate(self, expression):
        return self.request("evaluate", {"expression": expression})["result"]
