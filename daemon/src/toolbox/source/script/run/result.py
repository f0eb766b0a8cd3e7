"""A value of a script as JSON. What is no JSON becomes some where that makes sense; modules are not loaded for that."""

import sys


def text_of(value, depth=0):
    if depth > 200:
        raise ValueError("the result is nested too deeply, or holds itself")
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    kind = type(value)
    if kind is str:
        return quoted(value)
    if kind is int:
        return int.__repr__(value)
    if kind is float:
        finite = value - value == 0
        return float.__repr__(value) if finite else quoted(float.__repr__(value))
    if kind is dict:
        return members(value, depth)
    if kind is list or kind is tuple:
        return items(value, depth)
    return text_of_other(value, depth)


def items(values, depth):
    return "[" + ", ".join([text_of(value, depth + 1) for value in values]) + "]"


def members(value, depth):
    names = [key if isinstance(key, str) else str(key) for key in value]
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise ValueError(f"the result holds a dict with two keys that are both {twice!r} in JSON")
    each = [quoted(name) + ": " + text_of(item, depth + 1) for name, item in zip(names, value.values())]
    return "{" + ", ".join(each) + "}"


def text_of_other(value, depth):
    for kind, plain in KINDS:
        if isinstance(value, kind):
            return text_of(plain(value), depth + 1)
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return text_of({name: getattr(value, name) for name in fields(value)}, depth + 1)
    if callable(getattr(value, "model_dump", None)):
        return text_of(value.model_dump(), depth + 1)
    if not callable(value) and hasattr(value, "__iter__"):
        return items(value, depth)
    raise TypeError(f"the result holds a {type(value).__name__}, which cannot be written as JSON")


def fields(value):
    import dataclasses

    return [field.name for field in dataclasses.fields(value)]


def in_order(values):
    texts = [text_of(value) for value in values]
    return [value for _, value in sorted(zip(texts, list(values)), key=lambda pair: pair[0])]


def bytes_of(value):
    data = bytes(value)
    try:
        return data.decode()
    except UnicodeDecodeError:
        import base64

        return base64.b64encode(data).decode()


def loaded(module, *names):
    """Types that a value can only have where somebody has loaded their module."""
    module = sys.modules.get(module)
    return tuple(getattr(module, name) for name in names if hasattr(module, name))


def iso(value):
    return value.isoformat()


# What comes first wins: an enumeration of texts is a text too.
KINDS = [
    (loaded("enum", "Enum"), lambda value: value.value),
    ((str,), lambda value: str.__str__(value)),
    ((int,), lambda value: int(value)),
    ((float,), lambda value: float(value)),
    ((dict,), lambda value: dict(value)),
    ((set, frozenset), in_order),
    ((bytes, bytearray, memoryview), bytes_of),
    (loaded("datetime", "datetime", "date", "time"), iso),
    (loaded("datetime", "timedelta"), str),
    (loaded("decimal", "Decimal"), str),
    (loaded("pathlib", "PurePath"), str),
    (loaded("uuid", "UUID"), str),
    ((complex,), str),
    ((tuple,), lambda value: value._asdict() if hasattr(value, "_asdict") else list(value)),
    ((list,), lambda value: list(value)),
]

try:
    from _json import encode_basestring as quoted
except ImportError:
    import json

    def quoted(text):
        return json.dumps(text, ensure_ascii=False)
