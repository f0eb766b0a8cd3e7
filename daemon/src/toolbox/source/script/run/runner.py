"""Calls one function of a script with the JSON object on standard input, and writes what it returns to LLM_OUTPUT."""

import os
import sys


def given():
    text = sys.stdin.buffer.read().decode()
    try:
        from _json import make_scanner
    except ImportError:
        import json

        return json.loads(text)

    class Form:
        strict = False
        object_hook = object_pairs_hook = parse_constant = None
        parse_float = float
        parse_int = int

    return make_scanner(Form)(text, 0)[0]


def reach(folder):
    """Lets a script import what lies beside it, which never stands in the place of the standard library."""
    if sys.path and sys.path[0] == "":
        del sys.path[0]
    library = os.path.dirname(os.__file__)
    own = (library, os.path.join(library, "lib-dynload"))
    last = max((at for at, place in enumerate(sys.path) if place in own), default=-1)
    sys.path.insert(last + 1, folder)


def load(file, source):
    # The parts of importlib that are there already: the rest of it takes longer than the script.
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import spec_from_file_location

    folder, name = os.path.split(file)
    reach(folder)
    sys.argv = [file]
    sys.dont_write_bytecode = True
    stem = os.path.splitext(name)[0]
    if stem in getattr(sys, "stdlib_module_names", ()):
        # What else imports that name means the library's.
        stem += "_tool"
    module = module_from_spec(spec_from_file_location(stem, file))
    sys.modules[stem] = module
    with open(source or file, "rb") as text:
        code = compile(text.read(), file, "exec")
    exec(code, module.__dict__)
    return module


def lacking(function):
    """The parameters that have no default."""
    code = getattr(function, "__code__", None)
    if type(function) is not type(lacking) or hasattr(function, "__wrapped__"):
        return lacking_of_any(function)
    count = code.co_argcount
    keywords = code.co_varnames[count : count + code.co_kwonlyargcount]
    known = function.__kwdefaults__ or {}
    named = code.co_varnames[code.co_posonlyargcount : count - len(function.__defaults__ or ())]
    return [*named, *(name for name in keywords if name not in known)]


def lacking_of_any(function):
    import inspect

    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one.name for one in parameters if one.kind in kinds and one.default is one.empty]


def is_record(hint):
    marks = ("__dataclass_fields__", "_fields", "model_fields")
    return isinstance(hint, type) and any(hasattr(hint, mark) for mark in marks)


def made(hint, value, space):
    """An object of JSON as the record that a hint asks for; anything else stays as it is."""
    kind = type(value)
    if kind is not dict and kind is not list:
        return value
    hint = getattr(hint, "__forward_arg__", hint)
    if isinstance(hint, str):
        try:
            hint = eval(hint, space)
        except Exception:
            return value
    if hasattr(hint, "__metadata__"):
        hint = hint.__origin__
    if kind is dict and is_record(hint):
        hints = getattr(hint, "__annotations__", {})
        return hint(**{name: made(hints.get(name), item, space) for name, item in value.items()})
    inner = getattr(hint, "__args__", ())
    origin = getattr(hint, "__origin__", None)
    if kind is list and isinstance(origin, type) and len(inner) == 1:
        return [made(inner[0], item, space) for item in value]
    if kind is dict and isinstance(origin, type) and len(inner) == 2:
        return {name: made(inner[1], item, space) for name, item in value.items()}
    for one in inner:
        fresh = made(one, value, space) if not isinstance(origin, type) else value
        if fresh is not value:
            return fresh
    return value


def call(function, arguments):
    hints = getattr(function, "__annotations__", None) or {}
    for name, value in arguments.items():
        if name in hints:
            arguments[name] = made(hints[name], value, getattr(function, "__globals__", {}))
    for name in lacking(function):
        # What is told as optional and has no default is none.
        arguments.setdefault(name, None)
    value = function(**arguments)
    kind = type(value)
    if hasattr(kind, "__await__"):
        import asyncio

        async def wait():
            return await value

        return asyncio.run(wait())
    if hasattr(kind, "__aiter__"):
        import asyncio

        async def collect():
            return [item async for item in value]

        return asyncio.run(collect())
    return value


def encoded(text):
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half of a character is none.
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text).encode()


def main():
    file, name, source, writing = sys.argv[1:5]
    arguments = given()
    function = getattr(load(file, source), name, None)
    if function is None:
        sys.exit(f"{file} has no function {name}")
    value = call(function, arguments)
    if value is None:
        return
    if not isinstance(value, str):
        writer = {}
        exec(writing, writer)
        value = writer["text_of"](value)
    with open(os.environ["LLM_OUTPUT"], "ab") as output:
        output.write(encoded(value))


main()
