"""Calls one function of a module with the JSON object on standard input, and writes what it returns to LLM_OUTPUT."""

import importlib.util
import inspect
import json
import os
import sys


def plain(value, depth=0):
    if depth > 200:
        raise ValueError("the result is nested too deeply, or holds itself")
    if value is None or isinstance(value, (bool, str)):
        return value
    import base64
    import dataclasses
    import datetime
    import decimal
    import enum
    import math
    import pathlib
    import uuid

    if isinstance(value, enum.Enum):
        return plain(value.value, depth + 1)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): plain(item, depth + 1) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name), depth + 1) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict(), depth + 1)
    if isinstance(value, (set, frozenset)):
        items = [plain(item, depth + 1) for item in value]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return base64.b64encode(data).decode()
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, datetime.timedelta, pathlib.PurePath, uuid.UUID, complex)):
        return str(value)
    if callable(getattr(value, "model_dump", None)):
        return plain(value.model_dump(), depth + 1)
    if not callable(value) and hasattr(value, "__iter__"):
        return [plain(item, depth + 1) for item in value]
    raise TypeError(f"the result holds a {type(value).__name__}, which cannot be written as JSON")


def load(file):
    folder, name = os.path.split(file)
    sys.path[0] = folder
    sys.argv = [file]
    stem = os.path.splitext(name)[0]
    spec = importlib.util.spec_from_file_location(stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


def call(function, arguments):
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    for parameter in parameters:
        # What is told as optional and has no default is none.
        if parameter.kind in kinds and parameter.default is parameter.empty:
            arguments.setdefault(parameter.name, None)
    value = function(**arguments)
    if inspect.isawaitable(value):
        import asyncio

        async def wait():
            return await value

        value = asyncio.run(wait())
    elif inspect.isasyncgen(value):
        import asyncio

        async def collect():
            return [item async for item in value]

        value = asyncio.run(collect())
    return value


def main():
    file, name = sys.argv[1:3]
    arguments = json.load(sys.stdin)
    function = getattr(load(file), name, None)
    if function is None:
        sys.exit(f"{file} has no function {name}")
    value = call(function, arguments)
    if value is None:
        return
    text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    with open(os.environ["LLM_OUTPUT"], "a", encoding="utf-8", errors="replace", newline="") as output:
        output.write(text)


main()
