//! Every kind of parameter of each language carries every word.

use super::*;

const SUM: [(&str, &str); 3] = [
    (
        "sum.sh",
        "# @describe Sum.\n# @option -a --one! <TEXT> A\n# @option --many* <X> B\n# @option --split*, C\n\
         # @arg pos! E\n# @arg rest* F\n\
         main() { printf '%s\\0' \"$argc_one\" \"${argc_many[@]}\" \"${argc_split[@]}\" \"$argc_pos\" \"${argc_rest[@]}\" | sha256sum; }\n\
         eval \"$(argc --argc-eval \"$0\" \"$@\")\"\n",
    ),
    (
        "sum.py",
        "import hashlib\nfrom typing import Optional\ndef run(one: str, many: list[str], split: Optional[list[str]], pos: 'str | int', *, rest: tuple[str, ...]):\n    \
         \"\"\"Sum.\"\"\"\n    text = ''.join(word + '\\0' for word in [one, *many, *split, pos, *rest])\n    \
         return hashlib.sha256(text.encode()).hexdigest()\n",
    ),
    (
        "sum.js",
        "const crypto = require('crypto');\n/**\n * Sum.\n * @typedef {Object} Args\n * @property {string} one\n * @property {string[]} many\n \
         * @property {Array<string>} [split]\n * @property {string|number} pos\n * @property {[string, ...string[]]} rest\n * @param {Args} args\n */\n\
         exports.run = ({ one, many, split, pos, rest }) => crypto.createHash('sha256')\n  \
         .update([one, ...many, ...split, pos, ...rest].map((word) => word + '\\0').join('')).digest('hex');\n",
    ),
];

#[tokio::test]
async fn every_kind_of_parameter_carries_every_word() {
    use sha2::Digest;
    for (name, content) in SUM {
        let bench = Bench::new();
        for word in hard_words() {
            let given = [word.clone(), format!("{word},{word}"), String::new()];
            let arguments =
                json!({"one": word, "many": given, "split": given, "pos": word, "rest": given});
            let result = run_in(&bench, name, content, arguments).await;
            let mut all = vec![word.clone()];
            all.extend(given.iter().chain(&given).cloned());
            all.push(word.clone());
            all.extend(given);
            let text: String = all.iter().map(|word| format!("{word}\0")).collect();
            let sum = sha2::Sha256::digest(text);
            let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
            let output = result["output"].as_str().unwrap_or_default();
            let shown: String = word.chars().take(40).collect();
            assert!(output.starts_with(&sum), "{name} {shown:?}: {result}");
        }
        assert!(!bench.cwd().join("PWNED").exists());
    }
}

#[tokio::test]
async fn a_nul_is_refused_wherever_it_stands() {
    for (name, content) in SUM {
        let good = json!({"one": "a", "many": ["b"], "split": [], "pos": "c", "rest": ["d"]});
        for (at, value) in [
            ("one", json!("a\0")),
            ("many", json!(["b", "\0"])),
            ("pos", json!("\0c")),
            ("rest", json!(["d", "e\0f"])),
        ] {
            let mut arguments = good.clone();
            arguments[at] = value;
            let result = run(name, content, arguments).await;
            let why = result["error"].as_str().unwrap();
            assert!(
                why.contains(&format!("{at:?}")) && why.contains("NUL"),
                "{name}: {why}"
            );
        }
    }
}
