//! What a new script says. It declares its parameters and gives back what it was given.

use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Language {
    Bash,
    JavaScript,
    Python,
}

/// A parameter, by the suffix of its word.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Param {
    name: String,
    required: bool,
    list: bool,
}

impl Param {
    pub(super) fn read(word: &str, language: Language) -> Result<Self, String> {
        let (name, required, list) = match word.char_indices().next_back() {
            Some((at, '!')) => (&word[..at], true, false),
            Some((at, '+')) => (&word[..at], true, true),
            Some((at, '*')) => (&word[..at], false, true),
            _ => (word, false, false),
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        if !is_name {
            return Err(format!(
                "{word:?} is no parameter: a name, and then nothing or one of ! * +"
            ));
        }
        let name = match language {
            Language::Bash => name.to_owned(),
            Language::JavaScript | Language::Python => name.replace('-', "_"),
        };
        if language == Language::Python && KEYWORDS.contains(&name.as_str()) {
            return Err(format!(
                "{name} is a word of Python's and cannot be a parameter"
            ));
        }
        Ok(Self {
            name,
            required,
            list,
        })
    }

    fn about(&self) -> String {
        format!("The {}", self.name.replace(['_', '-'], " "))
    }
}

const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Two of one name are one too many.
pub(super) fn check(params: &[Param]) -> Result<(), String> {
    let folded = |param: &Param| param.name.replace('-', "_");
    for (at, param) in params.iter().enumerate() {
        if params[..at]
            .iter()
            .any(|known| folded(known) == folded(param))
        {
            return Err(format!("the parameter {} is there twice", param.name));
        }
    }
    Ok(())
}

impl Language {
    pub(super) fn of(file: &Path) -> Option<Self> {
        file.file_stem()?;
        match file.extension()?.to_str()? {
            "sh" => Some(Self::Bash),
            "js" => Some(Self::JavaScript),
            "py" => Some(Self::Python),
            _ => None,
        }
    }

    pub(super) fn script(self, description: &str, params: &[Param]) -> String {
        match self {
            Self::Bash => bash(description, params),
            Self::JavaScript => javascript(description, params),
            Self::Python => python(description, params),
        }
    }
}

fn bash(description: &str, params: &[Param]) -> String {
    let (mut tags, mut body) = (String::new(), String::new());
    for param in params {
        let suffix = match (param.required, param.list) {
            (true, true) => "+",
            (false, true) => "*",
            (true, false) => "!",
            (false, false) => "",
        };
        tags += &format!("# @option --{}{suffix} {}\n", param.name, param.about());
        let variable = format!("argc_{}", param.name.replace('-', "_"));
        let value = if param.list {
            format!("${{{variable}[*]}}")
        } else {
            format!("${variable}")
        };
        body += &format!("    echo \"{}: {value}\" >> \"$LLM_OUTPUT\"\n", param.name);
    }
    if body.is_empty() {
        body.push_str("    echo \"done\" >> \"$LLM_OUTPUT\"\n");
    }
    format!(
        "#!/usr/bin/env bash\nset -e\n\n# @describe {description}\n{tags}\n# @env LLM_OUTPUT=/dev/stdout The output path\n\n\
         main() {{\n{body}}}\n\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n"
    )
}

fn javascript(description: &str, params: &[Param]) -> String {
    let description = description.replace("*/", "*\\/");
    let mut properties = String::new();
    for param in params {
        let kind = if param.list { "string[]" } else { "string" };
        let name = if param.required {
            param.name.clone()
        } else {
            format!("[{}]", param.name)
        };
        properties += &format!(" * @property {{{kind}}} {name} - {}\n", param.about());
    }
    if !properties.is_empty() {
        properties = format!(" * @typedef {{Object}} Args\n{properties} * @param {{Args}} args\n");
    }
    format!(
        "/**\n * {description}\n{properties} */\nexports.run = function (args) {{\n  return JSON.stringify(args);\n}};\n"
    )
}

/// What is required comes first: Python wants it so.
fn python(description: &str, params: &[Param]) -> String {
    let description = description.replace('\\', "\\\\").replace('"', "\\\"");
    let (required, optional): (Vec<_>, Vec<_>) = params.iter().partition(|param| param.required);
    let params = [required, optional].concat();
    let (mut signature, mut about, mut given) = (String::new(), String::new(), Vec::new());
    for param in &params {
        let kind = if param.list { "List[str]" } else { "str" };
        let hint = if param.required {
            kind.to_owned()
        } else {
            format!("Optional[{kind}] = None")
        };
        signature += &format!("    {}: {hint},\n", param.name);
        about += &format!("        {}: {}\n", param.name, param.about());
        given.push(format!("\"{0}\": {0}", param.name));
    }
    if params.is_empty() {
        return format!("def run():\n    \"\"\"{description}\"\"\"\n    return \"done\"\n");
    }
    format!(
        "from typing import List, Optional\n\n\ndef run(\n{signature}):\n    \"\"\"{description}\n\n    Args:\n{about}    \
         \"\"\"\n    return {{{}}}\n",
        given.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(words: &[&str], language: Language) -> Vec<Param> {
        words
            .iter()
            .map(|word| Param::read(word, language).unwrap())
            .collect()
    }

    #[test]
    fn suffixes_mean_what_they_mean_everywhere() {
        let of = |word| {
            let param = Param::read(word, Language::Bash).unwrap();
            (param.required, param.list)
        };
        assert_eq!(
            ["a", "a!", "a+", "a*"].map(of),
            [(false, false), (true, false), (true, true), (false, true)]
        );
        for bad in ["", "!", "a b", "a!!", "1a", "$(x)", "ä"] {
            assert!(Param::read(bad, Language::Bash).is_err(), "{bad}");
        }
        assert!(Param::read("class", Language::Python).is_err());
        assert!(check(&params(&["a-b", "a_b"], Language::Bash)).is_err());
    }

    #[test]
    fn python_has_what_is_required_first() {
        let text = Language::Python.script(
            "D.",
            &params(&["foo", "bar!", "baz+", "qux*"], Language::Python),
        );
        let places = [
            "bar: str,",
            "baz: List[str],",
            "foo: Optional[str] = None,",
            "qux: Optional[List[str]] = None,",
        ];
        let found: Vec<_> = places
            .iter()
            .map(|place| text.find(place).unwrap())
            .collect();
        assert!(found.is_sorted(), "{text}");
    }
}
