"""Write a dwell plugin in Python: `import dwell`, decorate a setup block with `@dwell.setup`, and that is all.

A plugin may run as `python3 dwell.py PLUGIN` (what dwell does with a `.py` file), or be an executable that ends with
`dwell.serve()`. Handlers run on threads, so they may block and may call the session while another one runs. `print`
goes to the session; what should go to the daemon's log is written to `sys.stderr`.
"""

import contextvars, inspect, io, itertools, json, os, queue, sys, threading, traceback

sys.modules.setdefault("dwell", sys.modules[__name__])
_wire_in, _wire_out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)  # what other programs print goes to the log
_writing, _ids, _waiting = threading.Lock(), itertools.count(1), {}
_current = contextvars.ContextVar("session", default=None)
_fetch = contextvars.ContextVar("fetch", default=None)
_call = contextvars.ContextVar("call", default=None)
_setups, _tools, _hooks, _commands, _providers, _instances = [], {}, {}, {}, {}, {}
_ready = False


class Error(Exception):
    """What the daemon answered instead of a result."""

    def __init__(self, error):
        super().__init__(error.get("message", "failed"))
        self.code, self.data = error.get("code"), error.get("data")


def setup(block):
    """Calls `block(session)` when the plugin is set up."""
    _setups.append(block)
    return block


def provider(name):
    """Registers a provider: the decorated factory takes `model`, and returns an object with `fetch(messages, tools, emit)`."""

    def register(factory):
        _providers[str(name)] = factory
        _changed()
        return factory

    return register


def call(method, **params):
    """Calls any method of the daemon and returns its result."""
    if not _ready:
        raise RuntimeError("nothing can be called before the setup block")
    number, box = next(_ids), queue.SimpleQueue()
    _waiting[number] = box
    _send({"id": number, "method": method, "params": params})
    answer = box.get()
    if "error" in answer:
        raise Error(answer["error"])
    return answer.get("result")


class Toolbox:
    def add(self, name, description="", params=None, required=(), aliases=()):
        """Decorates what runs the tool: it takes the arguments and returns a dict."""

        def register(handler):
            info = {"name": name, "description": description, "params": params or {}}
            _tools[name] = (dict(info, required=list(required), aliases=list(aliases)), handler)
            _changed()
            return handler

        return register

    def before(self, tool=None):
        """Decorates a hook `(args)` or `(args, tool_name)`; raising stops the call."""
        return _hook("before", tool)

    def after(self, tool=None):
        """Decorates a hook `(args, result)` or `(args, result, tool_name)`."""
        return _hook("after", tool)

    def run(self, name, arguments=None):
        """Runs a tool through the gate and returns its result, a failure too."""
        return call("tool/run", session=session.id, name=name, arguments=arguments or {}, call=_call.get())


class Commands:
    def register(self, name, description="", completions=None):
        """Decorates a slash command: it takes the rest of the line, or None, and may return text for its caller."""

        def register(handler):
            words = list(completions) if isinstance(completions, (list, tuple)) else None
            info = {"name": name, "description": description, "completions": [] if completions is None else words}
            _commands[name] = (info, handler, completions)
            _changed()
            return handler

        return register


class Output:
    def say(self, text):
        """Shows text to everybody who looks at the session."""
        call("session/say", session=session.id, text=str(text))


class Session:
    """The session that the running handler was called for; in the setup block the one that needed the plugin first."""

    toolbox, commands, output = Toolbox(), Commands(), Output()

    @property
    def id(self):
        return _current.get()

    def turn(self, text):
        """Runs a turn to its end and returns the model's reply."""
        started = call("turn/start", session=self.id, text=text)
        return call("turn/wait", turn=started["turn"])["reply"]

    def replace(self, messages):
        """Makes these messages the conversation."""
        return call("session/replace", session=self.id, messages=messages)

    def clear(self):
        return call("session/clear", session=self.id)

    def history(self, **page):
        """Events of the session's log."""
        return call("session/history", session=self.id, **page)["events"]

    @property
    def provider(self):
        return call("session/get", session=self.id)["provider"]

    @provider.setter
    def provider(self, name):
        self.switch(name)

    def switch(self, name, model=None):
        return call("provider/switch", session=self.id, name=name, model=model)


session = Session()


def serve():
    """Speaks with the daemon until it has no more to say."""
    global _ready, serve
    serve = lambda: None
    pool, idle = queue.SimpleQueue(), threading.Semaphore(0)

    def work():
        while True:
            context, message = pool.get()
            context.run(_answer, message)
            idle.release()

    _ready = True
    for line in _wire_in:
        message = json.loads(line)
        if "method" not in message:
            box = _waiting.pop(message.get("id"), None)
            if box:
                box.put(message)
        elif "id" in message:
            if not idle.acquire(blocking=False):
                threading.Thread(target=work, daemon=True).start()
            pool.put((contextvars.copy_context(), message))
        elif message["method"] == "provider/release":
            _instances.pop(message["params"]["instance"], None)
    os._exit(0)


def _answer(message):
    params = message.get("params") or {}
    _current.set(params.get("session"))
    _fetch.set(message["id"])
    _call.set(params.get("call"))
    try:
        handler = _methods.get(message["method"])
        if handler is None:
            raise Error({"code": -32601, "message": f"there is no method {message['method']} here"})
        text = _text({"id": message["id"], "result": handler(params)})
    except BaseException as error:  # also `sys.exit`, as argparse does it: the plugin goes on
        if message["method"] == "plugin/hook":  # refusing is what hooks are for
            print(f"{params['id']}: {error!r}", file=sys.stderr)
        elif not isinstance(error, Error):
            traceback.print_exc()
        code = error.code if isinstance(error, Error) else -32000
        why = str(error) or type(error).__name__
        if isinstance(error, SystemExit):
            why = f"it ended by sys.exit({error.code!r})"
        text = _text({"id": message["id"], "error": {"code": code, "message": why}})
    sys.stdout.flush()
    _write(text)


def _set_up(params):
    for registry in (_tools, _hooks, _commands):
        registry.clear()
    for block in _setups:
        block(session)
    return _what()


def _what():
    hooks = [{"id": id, "point": point, "tool": tool} for id, (point, tool, _) in _hooks.items()]
    return {
        "tools": [info for info, _ in _tools.values()],
        "hooks": hooks,
        "commands": [info for info, _, _ in _commands.values()],
        "providers": [{"name": name} for name in _providers],
    }


def _changed():
    """What is registered outside the setup block is told as it comes."""
    if _ready and _fetch.get() is None:
        _send({"method": "plugin/update", "params": _what()})


def _hook(point, tool):
    def register(block):
        _hooks[f"{len(_hooks) + 1}-{getattr(block, '__name__', 'hook')}"] = (point, tool, block)
        _changed()
        return block

    return register


def _run_hook(params):
    point, _, block = _hooks[params["id"]]
    arguments = [params["arguments"]] + ([params.get("result") or {}] if point == "after" else [])
    _fitting(block, *arguments, tool_name=params["tool"])


def _fitting(block, *arguments, **named):
    """Calls with as much as the block takes."""
    try:
        known = inspect.signature(block).parameters.values()
    except (TypeError, ValueError):
        return block(*arguments)
    if not any(one.kind == one.VAR_KEYWORD for one in known):
        named = {name: value for name, value in named.items() if any(one.name == name for one in known)}
    if not any(one.kind == one.VAR_POSITIONAL for one in known):
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        arguments = arguments[: sum(one.kind in positional and one.name not in named for one in known)]
    return block(*arguments, **named)


def _run_tool(params):
    return _tools[params["name"]][1](params["arguments"])


def _run_command(params):
    output = _commands[params["name"]][1](params.get("arguments"))
    return {"output": output} if isinstance(output, str) else None


def _complete(params):
    words = _commands[params["name"]][2]
    words = words() if callable(words) else words or []
    return [word for word in map(str, words) if word.startswith(params["partial"])]


def _build(params):
    built = _fitting(_providers[params["name"]], model=params.get("model"), env=params.get("env") or {})
    name = str(next(_ids))
    _instances[name] = built
    about = {"model": getattr(built, "model", None) or params.get("model"), "window": getattr(built, "window", None)}
    return {"instance": name, **{key: value for key, value in about.items() if value}}


def _fetch_from(params):
    number = _fetch.get()

    def emit(type, **event):
        _send({"method": "provider/event", "params": {"fetch": number, "type": type, **event}})

    _instances[params["instance"]].fetch(params["messages"], params["tools"], emit)


def _models(params):
    models = getattr(_instances[params["instance"]], "models", list)
    return [{"name": one} if isinstance(one, str) else one for one in (models() if callable(models) else models)]


_methods = {
    "plugin/setup": _set_up,
    "plugin/tool": _run_tool,
    "plugin/hook": _run_hook,
    "plugin/command": _run_command,
    "plugin/complete": _complete,
    "provider/build": _build,
    "provider/fetch": _fetch_from,
    "provider/models": _models,
}


def _text(message):
    return json.dumps(message, allow_nan=False)  # NaN and Infinity are no JSON


def _send(message):
    _write(_text(message))


def _write(text):
    line = text.encode() + b"\n"
    with _writing:
        _wire_out.write(line)
        _wire_out.flush()


class _Printed(io.TextIOBase):
    """`print` for the session, a line at a time; without a session it goes to the log."""

    def __init__(self):
        self._begun = threading.local()

    def write(self, text):
        begun = getattr(self._begun, "text", "") + text
        *lines, self._begun.text = begun.split("\n")
        if lines:
            self._say("\n".join(lines))
        return len(text)

    def flush(self):
        begun, self._begun.text = getattr(self._begun, "text", ""), ""
        if begun:
            self._say(begun)

    def _say(self, text):
        if session.id is None:
            print(text, file=sys.stderr)
        else:
            _send({"method": "session/say", "params": {"session": session.id, "text": text}})


sys.stdout = _Printed()

if __name__ == "__main__":
    import runpy

    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
    serve()
