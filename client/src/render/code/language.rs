//! The languages whose code is coloured: one entry each. Must never hold what is done with them.

/// What a scanner must know of a language.
#[derive(Debug)]
pub(super) struct Language {
    /// Names and file endings.
    names: &'static [&'static str],
    /// What begins a comment to the end of its line.
    pub(super) line: &'static [&'static str],
    /// What begins and ends a comment.
    pub(super) block: &'static [(&'static str, &'static str)],
    /// What begins and ends a text over several lines.
    pub(super) long: &'static [&'static str],
    /// What begins and ends a text within a line.
    pub(super) quotes: &'static str,
    /// Its keywords.
    pub(super) keywords: &'static str,
    /// Whether keywords are the same in capitals.
    pub(super) folds_case: bool,
}

impl Language {
    pub(super) fn is_diff(&self) -> bool {
        self.names.contains(&"diff")
    }
}

/// By a name as people write it behind a fence.
pub(super) fn find(name: &str) -> Option<&'static Language> {
    let name = name.trim().to_ascii_lowercase();
    LANGUAGES
        .iter()
        .find(|language| language.names.contains(&name.as_str()))
}

const C_LINE: &[&str] = &["//"];
const C_BLOCK: &[(&str, &str)] = &[("/*", "*/")];
const HASH: &[&str] = &["#"];

/// The part that most entries share.
const PLAIN: Language = Language {
    names: &[],
    line: &[],
    block: &[],
    long: &[],
    quotes: "\"'",
    keywords: "",
    folds_case: false,
};

/// Keywords that the family of C has in common come first in each.
static LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        line: C_LINE,
        block: C_BLOCK,
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod \
                   move mut pub ref return self Self static struct super trait true type unsafe use where while",
        ..PLAIN
    },
    Language {
        names: &["python", "py", "python3"],
        line: HASH,
        long: &["\"\"\"", "'''"],
        keywords: "and as assert async await break case class continue def del elif else except False finally for from \
                   global if import in is lambda match None nonlocal not or pass raise return True try while with yield",
        ..PLAIN
    },
    Language {
        names: &[
            "javascript",
            "js",
            "jsx",
            "mjs",
            "cjs",
            "typescript",
            "ts",
            "tsx",
        ],
        line: C_LINE,
        block: C_BLOCK,
        long: &["`"],
        keywords: "abstract any as async await boolean break case catch class const continue debugger default delete do else \
                   enum export extends false finally for from function if implements import in instanceof interface keyof \
                   let new null number of private protected public readonly return static string super switch this throw \
                   true try type typeof undefined var void while with yield",
        ..PLAIN
    },
    Language {
        names: &["bash", "sh", "shell", "zsh", "console", "fish"],
        line: HASH,
        keywords: "alias break case cd continue declare do done echo elif else esac eval exec exit export fi for function if \
                   in local read readonly return set shift source then trap unset until while",
        ..PLAIN
    },
    Language {
        names: &["c", "h", "cpp", "c++", "cc", "hpp", "cxx", "objc"],
        line: C_LINE,
        block: C_BLOCK,
        keywords: "auto bool break case catch char class const constexpr continue default delete do double else enum extern \
                   false float for goto if inline int long namespace new nullptr operator private protected public return \
                   short signed sizeof static struct switch template this throw true try typedef typename union unsigned \
                   using virtual void volatile while",
        ..PLAIN
    },
    Language {
        names: &["go", "golang"],
        line: C_LINE,
        block: C_BLOCK,
        long: &["`"],
        keywords: "break case chan const continue default defer else error fallthrough false for func go goto if import \
                   interface map nil package range return select string struct switch true type var",
        ..PLAIN
    },
    Language {
        names: &[
            "java", "kotlin", "kt", "scala", "csharp", "cs", "c#", "swift", "dart", "groovy",
        ],
        line: C_LINE,
        block: C_BLOCK,
        long: &["\"\"\""],
        keywords: "abstract as async await boolean break case catch class const continue data default def do else enum \
                   extends false final finally for foreach fun func guard if implements import in init instanceof int \
                   interface internal is lazy let long match namespace new nil null object override package private \
                   protected public return sealed static string struct super switch this throw throws trait true try \
                   typealias using val var virtual void when where while yield",
        ..PLAIN
    },
    Language {
        names: &["ruby", "rb"],
        line: HASH,
        keywords: "alias and begin break case class def defined do else elsif end ensure false for if in module next nil not \
                   or redo require rescue retry return self super then true undef unless until when while yield",
        ..PLAIN
    },
    Language {
        names: &["php"],
        line: &["//", "#"],
        block: C_BLOCK,
        keywords: "abstract as break case catch class const continue default do echo else elseif extends false final finally \
                   fn for foreach function if implements interface match namespace new null private protected public return \
                   static switch throw trait true try use var while",
        ..PLAIN
    },
    Language {
        names: &["lua"],
        line: &["--"],
        block: &[("--[[", "]]")],
        keywords: "and break do else elseif end false for function goto if in local nil not or repeat return then true until \
                   while",
        ..PLAIN
    },
    Language {
        names: &["sql", "psql", "sqlite", "mysql"],
        line: &["--"],
        block: C_BLOCK,
        keywords: "add all alter and as asc begin between by case check commit constraint create default delete desc distinct \
                   drop else end exists foreign from full group having if in index inner insert into is join key left like \
                   limit not null offset on or order outer primary references returning right rollback select set table \
                   then transaction union unique update values view when where with",
        folds_case: true,
        ..PLAIN
    },
    Language {
        names: &["json", "jsonc", "json5", "jsonl"],
        line: C_LINE,
        block: C_BLOCK,
        quotes: "\"",
        keywords: "true false null",
        ..PLAIN
    },
    Language {
        names: &[
            "toml",
            "ini",
            "cfg",
            "conf",
            "yaml",
            "yml",
            "dockerfile",
            "makefile",
            "make",
            "mk",
            "properties",
        ],
        line: HASH,
        keywords: "true false null yes no on off FROM RUN COPY ADD CMD ENTRYPOINT ENV WORKDIR EXPOSE ARG include",
        ..PLAIN
    },
    Language {
        names: &["html", "xml", "svg", "vue"],
        block: &[("<!--", "-->")],
        ..PLAIN
    },
    Language {
        names: &["css", "scss", "less"],
        line: C_LINE,
        block: C_BLOCK,
        keywords: "important inherit initial none auto",
        ..PLAIN
    },
    Language {
        names: &["haskell", "hs", "elm"],
        line: &["--"],
        block: &[("{-", "-}")],
        quotes: "\"",
        keywords: "case class data deriving do else if import in infix instance let module newtype of then type where",
        ..PLAIN
    },
    Language {
        names: &["elixir", "ex", "exs", "erlang", "erl"],
        line: &["#", "%"],
        long: &["\"\"\""],
        keywords: "after and case catch cond def defmodule defp do else end false fn if import in nil not or quote raise \
                   receive rescue true try use when with",
        ..PLAIN
    },
    Language {
        names: &["zig", "nix", "hcl", "terraform", "tf", "proto"],
        line: &["//", "#"],
        block: C_BLOCK,
        keywords: "and break comptime const continue defer else enum error export false fn for if import in inherit let \
                   message or orelse package pub repeated resource return rpc service struct switch syntax test then true \
                   try union usingnamespace var variable while with",
        ..PLAIN
    },
    Language {
        names: &["diff", "patch"],
        ..PLAIN
    },
];
