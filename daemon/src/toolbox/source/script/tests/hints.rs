//! Python's hints, and the types that its docstrings write in words.

use super::*;

fn declared(text: &str) -> Value {
    let declared = declare(Language::Python, Kind::Tool, "t", text.as_bytes()).unwrap();
    declared.declarations[0].to_value()["parameters"].clone()
}

fn schema(kind: &str, form: &str) -> (Value, bool) {
    let text = match form {
        "numpy" => format!("Parameters\n    ----------\n    a : {kind}\n"),
        "sphinx" => format!(":param a:\n    :type a: {kind}\n"),
        _ => format!("Args:\n        a ({kind}): A\n"),
    };
    let found = declared(&format!(
        "def run(a):\n    \"\"\"D.\n\n    {text}    \"\"\"\n"
    ));
    let mut schema = found["properties"]["a"].clone();
    schema.as_object_mut().unwrap().remove("description");
    (schema, found["required"] == json!(["a"]))
}

#[test]
fn a_docstrings_words_for_types_are_types_in_every_form() {
    let strings = json!({"type": "array", "items": {"type": "string"}});
    for form in ["numpy", "sphinx", "google"] {
        for (kind, expected, required) in [
            ("str", json!({"type": "string"}), true),
            ("list of str", strings.clone(), true),
            ("list of strings, optional", strings.clone(), false),
            ("int, optional", json!({"type": "integer"}), false),
            ("int, default=5", json!({"type": "integer"}), true),
            ("int, default 5", json!({"type": "integer"}), true),
            (
                "array_like of float",
                json!({"type": "array", "items": {"type": "number"}}),
                true,
            ),
            (
                "list of list of int",
                json!({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}),
                true,
            ),
            (
                "str, {'x', 'y'}",
                json!({"type": "string", "enum": ["x", "y"]}),
                true,
            ),
            (
                "{'x', 'y'}, optional",
                json!({"type": "string", "enum": ["x", "y"]}),
                false,
            ),
            ("list[str] or None", strings.clone(), false),
            (
                "int or str",
                json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
                true,
            ),
            (
                "int, float, or None",
                json!({"anyOf": [{"type": "integer"}, {"type": "number"}]}),
                false,
            ),
            ("dict of str to int", json!({"type": "object"}), true),
            ("Thing, not a type", json!({"type": "string"}), true),
        ] {
            assert_eq!(schema(kind, form), (expected, required), "{form}: {kind}");
        }
    }
}

#[test]
fn the_default_comes_from_the_signature() {
    let text = "def run(limit=10):\n    \"\"\"D.\n\n    Parameters\n    ----------\n    limit : int, default=5\n    \"\"\"\n";
    assert_eq!(
        declared(text)["properties"],
        json!({"limit": {"type": "integer", "default": 10}})
    );
}

#[test]
fn hints_that_are_rare_make_schemas_that_can_be_used() {
    let text = "from enum import Enum\nclass C(Enum):\n    RED = 'r'\n    BLUE = 'b'\n\n\
        def run(a: None = None, p: tuple[int, str] = (1, 'a'), q: tuple[int, ...] = (), c: C = C.RED):\n    \"\"\"D.\"\"\"\n";
    let found = declared(text);
    assert_eq!(
        found["properties"],
        json!({
            "a": {},
            "p": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "minItems": 2, "maxItems": 2,
                  "prefixItems": [{"type": "integer"}, {"type": "string"}], "default": [1, "a"]},
            "q": {"type": "array", "items": {"type": "integer"}, "default": []},
            "c": {"type": "string", "enum": ["r", "b"], "default": "r"},
        })
    );
}

#[test]
fn records_of_the_file_are_objects_with_their_fields() {
    let text = "from typing import TypedDict, NotRequired, NamedTuple\nfrom dataclasses import dataclass, field\n\n\
        class Base(TypedDict):\n    name: str\n\n\
        class Person(Base, total=False):\n    \"\"\"A person.\"\"\"\n    age: int\n    home: 'Point'\n\n\
        @dataclass(frozen=True)\nclass Point:\n    x: int\n    y: float = 0.5\n    tags: list[str] = field(default_factory=list)\n    KIND: ClassVar[str] = 'p'\n    def near(self): ...\n\n\
        class Pair(NamedTuple):\n    a: int\n    b: str | None = None\n\n\
        class Ring(TypedDict):\n    next: 'Ring'\n    other: 'Ring'\n\n\
        def run(p: Person, q: list[Pair], r: Ring = None):\n    \"\"\"D.\"\"\"\n";
    let found = declared(text);
    let point = json!({"type": "object", "properties": {
        "x": {"type": "integer"},
        "y": {"type": "number", "default": 0.5},
        "tags": {"type": "array", "items": {"type": "string"}},
    }, "required": ["x"]});
    assert_eq!(
        found["properties"]["p"],
        json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "home": point},
            "required": ["name"]})
    );
    assert_eq!(
        found["properties"]["q"]["items"],
        json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]})
    );
    let ring = found["properties"]["r"].to_string();
    assert!(ring.len() < 200_000, "{}", ring.len());
    assert_eq!(found["required"], json!(["p", "q"]));
}

#[test]
fn choices_beside_choices_and_numbers_without_end() {
    let text = "def run(x: Literal['a'] | Literal['b', 'c'] | int, y: float = 1e400, z: int = -12345678901234567890123):\n    \"\"\"D.\"\"\"\n";
    assert_eq!(
        declared(text)["properties"].to_string(),
        json!({
            "x": {"anyOf": [{"type": "string", "enum": ["a", "b", "c"]}, {"type": "integer"}]},
            "y": {"type": "number"},
            "z": {"type": "integer", "default": serde_json::from_str::<Value>("-12345678901234567890123").unwrap()},
        })
        .to_string()
    );
}

#[test]
fn a_name_that_was_imported_by_another_is_what_it_was() {
    let text = "from typing import Optional as Opt, List as L\nfrom enum import IntEnum as IE\nimport enum\n\
        from dataclasses import dataclass as dc\n\n\
        class G(IE):\n    Y = 2\n    Z = enum.auto()\n\n\
        class S(enum.StrEnum):\n    FOO = enum.auto()\n    BAR = 'b'\n\n\
        class N(enum.Enum):\n    A = enum.auto()\n    B = enum.auto()\n\n\
        @dc\nclass P:\n    x: Opt[int] = None\n\n\
        def run(a: L[int], b: Opt[str] = None, g: G = G.Z, s: S = None, n: N = None, p: P = None):\n    \"\"\"D.\"\"\"\n";
    let found = declared(text);
    assert_eq!(
        found["properties"],
        json!({
            "a": {"type": "array", "items": {"type": "integer"}},
            "b": {"type": "string"},
            "g": {"type": "integer", "enum": [2, 3], "default": 3},
            "s": {"type": "string", "enum": ["foo", "b"]},
            "n": {"type": "integer", "enum": [1, 2]},
            "p": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": []},
        })
    );
    assert_eq!(found["required"], json!(["a"]));
}

#[test]
fn a_record_has_what_its_constructor_takes() {
    let text = "@dataclass\nclass B:\n    a: str\n    b: int = field(default=4)\n    c: Optional['B'] = None\n    \
        d: list[int] = field(default_factory=lambda: [1])\n    e: str = field(repr=False)\n    f: int = field(init=False, default=3)\n    \
        g: InitVar[int] = 1\n    _: KW_ONLY\n\n\
        class M(BaseModel):\n    n: int = Field(..., description='x')\n    m: int = Field(7)\n\n\
        def run(b: B, m: M):\n    \"\"\"D.\"\"\"\n";
    let found = declared(text);
    assert_eq!(
        found["properties"]["b"],
        json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer", "default": 4},
            "c": {"type": "object"},
            "d": {"type": "array", "items": {"type": "integer"}},
            "e": {"type": "string"},
            "g": {"type": "integer", "default": 1},
        }, "required": ["a", "e"]})
    );
    assert_eq!(
        found["properties"]["m"],
        json!({"type": "object", "properties": {"n": {"type": "integer"}, "m": {"type": "integer", "default": 7}}, "required": ["n"]})
    );
}

#[test]
fn a_docstring_may_stand_in_parentheses() {
    let text = "def run(a: str):\n    (\"Concat \"  # one\n     \"doc.\")\n    return a\n";
    let found = declare(Language::Python, Kind::Tool, "t", text.as_bytes()).unwrap();
    assert_eq!(found.declarations[0].description, "Concat doc.");
}
