//! What a line is taken for.

use super::{Command, split};

fn written(line: &str) -> Vec<String> {
    let split = split(line);
    assert_eq!(split.doubt, None, "{line:?}");
    split
        .commands
        .into_iter()
        .map(|command| command.written)
        .collect()
}

fn faces(line: &str) -> Vec<String> {
    split(line)
        .commands
        .into_iter()
        .flat_map(faces_of)
        .collect()
}

fn faces_of(command: Command) -> Vec<String> {
    let also = command.also.into_iter().map(|face| face.text);
    let inner = command.inner.into_iter().flat_map(|inner| faces_of(*inner));
    std::iter::once(command.plain.text)
        .chain(also)
        .chain(inner)
        .collect()
}

#[test]
fn plain_lists_are_split() {
    let table: [(&str, &[&str]); 17] = [
        ("git status", &["git status"]),
        ("  git \t status  ", &["git status"]),
        (
            "a && b || c; d | e & f\ng",
            &["a", "b", "c", "d", "e", "f", "g"],
        ),
        ("a;b", &["a", "b"]),
        ("echo 'a; b' \"c && d\"", &["echo 'a; b' \"c && d\""]),
        ("echo a\\;b", &["echo a\\;b"]),
        ("echo \"a\nb\"", &["echo \"a\nb\""]),
        ("cargo test 2>&1 | tail -5", &["cargo test", "tail -5"]),
        ("make >/dev/null 2> /dev/null", &["make"]),
        ("make 2>&-", &["make"]),
        ("make &>/dev/null; ls", &["make", "ls"]),
        ("make < /dev/null", &["make"]),
        ("git log HEAD~1", &["git log HEAD~1"]),
        ("git \\\nstatus", &["git status"]),
        ("echo $HOME", &["echo $HOME"]),
        ("ls *.rs", &["ls *.rs"]),
        ("timeout 5 npm test", &["timeout 5 npm test"]),
    ];
    for (line, expected) in table {
        assert_eq!(written(line), expected, "{line:?}");
    }
}

#[test]
fn what_is_not_understood_is_a_doubt() {
    let lines = [
        "echo $(rm x)",
        "echo `rm x`",
        "echo \"$(rm x)\"",
        "echo \"`rm x`\"",
        "echo ${x:-$(rm x)}",
        "echo $((x))",
        "echo $[x]",
        "diff <(rm x) b",
        "tee >(rm x)",
        "cat <<EOF\nx\nEOF",
        "cat <<< x",
        "cat < /etc/passwd",
        "echo x > y",
        "echo x >> y",
        "echo x >| y",
        "echo x &> y",
        "git &>/dev/null push",
        "git &>/dev/null 2>&1 push",
        "git 22>&1",
        "echo x >/dev/null$y",
        "echo x >/dev/null/../../tmp/y",
        "(rm x)",
        "{ rm x; }",
        "f() { rm x; }; f",
        "if true; then rm x; fi",
        "for x in a; do rm $x; done",
        "while true; do rm x; done",
        "! rm x",
        "[[ -f x ]]",
        "$cmd x",
        "\"$cmd\" x",
        "r$x",
        "{rm,x}",
        "r* x",
        "~/bin/x",
        "X=rm; $X y",
        "echo 'x",
        "echo \"x",
        "echo x\\",
        "echo $'x'",
        "echo $\"x\"",
        "echo x # rm y",
        "# rm y",
        "echo x\ry",
        "echo x\u{0}y",
        "echo\u{a0}x",
        "echo x\u{202e}y",
        "echo x\u{200b}y",
        "sudo rm x",
        "env rm x",
        "/usr/bin/env rm x",
        "\\sudo rm x",
        "'sudo' rm x",
        "env FOO=1 rm x",
        "xargs rm",
        "command rm x",
        "exec rm x",
        "sh -c 'rm x'",
        "bash x.sh",
        "eval rm x",
        ". x.sh",
        "source x.sh",
        "trap 'rm x' EXIT",
        "find . -exec rm {} +",
        "find . -execdir rm {} +",
        "timeout -s KILL 5 rm x",
        "timeout 5 sudo rm x",
        "nice -n 5 rm x",
        "time time rm x",
        "nohup env rm x",
    ];
    for line in lines {
        assert!(split(line).doubt.is_some(), "{line:?}: {:?}", split(line));
    }
}

#[test]
fn arguments_that_run_something_are_a_doubt() {
    let lines = [
        "find . -exec grep x {} +",
        "find . -okdir rm {} ;",
        "find . $x",
        "fd x -x rm",
        "fd x --exec-b rm",
        "fd -Hx rm",
        "tar xf a.tar --to-command=x",
        "tar cf a.tar --checkpoint=1 --checkpoint-action=exec=x y",
        "tar --checkpoint-a=exec=x -cf a y",
        "tar -I x -cf a y",
        "tar cIf x a y",
        "tar cf a *",
        "rsync -e x a b",
        "rsync -ave x a b",
        "rsync --rsh=x a b",
        "scp -o ProxyCommand=x a b:",
        "ssh -o ProxyCommand=x b",
        "sort --compress-program=x a",
        "sort --comp x a",
        "split --filter=x a",
        "rg --pre x y",
        "wget --use-askpass=x y",
        "man -P x y",
        "zip a b -TT x",
        "go test -exec x",
        "go build -toolexec=x",
        "cargo --config x test",
        "sqlite3 a.db '.shell x'",
        "git -c core.pager=x log",
        "git -c alias.x=!y x",
        "git --config-env=core.pager=X log",
        "git -C /tmp -c a=b log",
        "git --exec-path=x status",
        "git $x",
        "git grep -Ox y",
        "git grep --open-files x",
        "git rebase -x y",
        "git bisect run x",
        "git submodule foreach x",
        "git difftool -x y",
        "git config alias.x !y",
        "git diff --ext-diff",
        "git fetch --upload-pack=x y",
        "git clone -u x y",
        "git push --receive-pack=x",
        "git archive --exec=x --remote=y HEAD",
        "sed e x",
        "sed '1e x' y",
        "sed 's/a/b/e' y",
        "sed -n 's/a/b/w y' z",
        "sed -ne p -ne 'e x' y",
        "sed -nee",
        "sed -es/a/b/e x",
        "sed --expression=e x",
        "sed --exp e x",
        "sed -f x y",
        "sed \"s/a/$x/\" y",
        "sed -- e x",
        "awk 'BEGIN { system(\"x\") }'",
        "awk '{ print | \"x\" }' y",
        "awk '{ \"x\" | getline }' y",
        "awk '{ print > \"x\" }' y",
        "awk -f x y",
        "gawk -lx y",
        "awk \"{ $x }\" y",
        "test -v 'a[$(x)]'",
        "printf -v 'a[`x`]' y",
        "nice find . -exec x",
        "find -- a -exec x {} +",
        "find -L -- a -execdir x ;",
        "find -- a $x",
        "fd -x x -- y",
        "fd -- y -x x",
        "tar -cf a -- --to-command=x",
        "rg -- --pre=x y",
        "sort -- --compress-program=x",
        "git grep -- -Ox",
        "git fetch -- --upload-pack=x",
        "awk -- 'BEGIN { system(\"x\") }'",
        "xargs -- x",
        "vim -c '!x'",
        "vim y",
        "/usr/bin/ex -sc '!x' y",
        "ed y",
        "emacs --batch --eval x",
        "less +!x y",
        "gcc -wrapper x,y a.c",
        "gcc-13 -fplugin=x.so a.c",
        "x86_64-linux-gnu-gcc -B/tmp a.c",
        "clang -Xclang -load a.c",
        "cc @x",
        "rustc -C linker=x a.rs",
        "rustc -Clinker=x a.rs",
        "make --eval='$(shell x)'",
        "make -f x",
        "npm test --script-shell=x",
        "ccache x",
        "git stash show --ext-diff",
        "git merge -s x y",
        "crontab x",
        "perf stat x",
    ];
    for line in lines {
        assert!(split(line).doubt.is_some(), "{line:?}: {:?}", split(line));
    }
}

#[test]
fn arguments_that_run_nothing_are_none() {
    let lines = [
        "find . -name '*.rs' -type f",
        "find src/* -newer x",
        "fd -e rs x",
        "tar -tzvf a.tgz",
        "gcc -O2 -DBUILD -o a a.c",
        "make -j4 test",
        "less x",
        "rsync -avz --exclude x a b",
        "sort -t: -k2,2n x",
        "rg --pretty -n 'a|b' src",
        "curl -fsSL x",
        "go test ./...",
        "cargo test --workspace",
        "git status --short",
        "git log --oneline -n5 -Sfoo",
        "git --no-pager diff --text HEAD",
        "git branch -vv",
        "git tag -m x v1",
        "git checkout -b x",
        "git push origin main",
        "sed -n 1,20p x",
        "sed -nE 's/(a)/b/p' x",
        "sed -e s/a/b/ -e 2d x",
        "awk -F: '{ print $1 }' x",
        "awk -v n=1 'NR == n' src/*",
        "test -f x",
        "printf '%s\\n' x",
    ];
    for line in lines {
        let split = split(line);
        assert_eq!(split.doubt, None, "{line:?}");
        for command in split.commands {
            assert_eq!(command.changes, [""; 0], "{line:?}");
        }
    }
}

#[test]
fn of_a_known_kind_every_word_that_is_in_no_table_is_named() {
    let table: &[(&str, &[&str])] = &[
        ("cargo test -p x --release a::b -- --nocapture -q", &[]),
        (
            "cargo test --manifest-path ../x/Cargo.toml",
            &["--manifest-path"],
        ),
        ("cargo build --target-dir=/x -j4", &["--target-dir=/x"]),
        ("cargo test -Zunstable-options", &["-Zunstable-options"]),
        ("cargo fmt --all -- --check", &[]),
        ("cargo fmt -- x.rs", &["x.rs"]),
        ("cargo clippy --fix -- -Dwarnings -D x", &["--fix"]),
        ("cargo clippy -- -Clinker=x", &["-Clinker=x"]),
        ("cargo doc --open", &["--open"]),
        ("go test -run X -count=1 ./...", &[]),
        ("go test -o x -c", &["-o", "-c"]),
        (
            "go build -pkgdir=/x -ldflags=-extld=/x",
            &["-pkgdir=/x", "-ldflags=-extld=/x"],
        ),
        ("go vet ../x /y", &["../x", "/y"]),
        ("npm run build --userconfig=x", &["--userconfig=x"]),
        ("npm test -- src/a.test.js --config x", &["--config"]),
        (
            "pnpm test --config.script-shell=x",
            &["--config.script-shell=x"],
        ),
        ("pytest -vx -k 'a or b' tests/a.py::b --tb=short", &[]),
        (
            "pytest @args -k @more ../x.py --pastebin=all",
            &["@args", "@more", "../x.py", "--pastebin=all"],
        ),
        ("git commit -am 'x y' --signoff", &[]),
        (
            "git commit --amend --no-verify -F /etc/passwd",
            &["--amend", "--no-verify", "-F", "/etc/passwd"],
        ),
        ("git commit -an", &["-an"]),
        ("git add -A src -- x", &[]),
        ("git add -p", &["-p"]),
        (
            "git log --show-signature --format=%G?",
            &["--show-signature", "--format=%G?"],
        ),
        ("/usr/bin/pytest --debug=x", &["--debug=x"]),
    ];
    for (line, expected) in table {
        let split = split(line);
        assert_eq!(split.doubt, None, "{line}");
        assert_eq!(split.commands[0].changes, *expected, "{line}");
    }
}

#[test]
fn an_expansion_within_an_options_name_is_a_doubt_and_one_in_its_value_is_none() {
    for line in [
        "git log --output$X=o",
        "git log -$X-output=o",
        "git log --outpu{t,}=o",
        "npm run build --script-shell$X=x",
        "sort --compress-program$X=x a",
    ] {
        assert!(split(line).doubt.is_some(), "{line}");
    }
    assert_eq!(split("sort --key=$X a").doubt, None);
}

#[test]
fn arguments_that_destroy_or_write_are_named() {
    let table: &[(&str, &[&str])] = &[
        ("find . -delete", &["-delete"]),
        ("find . -fprint x -fls y", &["-fprint", "-fls"]),
        ("find -- keep -delete", &["-delete"]),
        ("find -L -- x -fprint f", &["-fprint"]),
        ("sort -- -o x", &["-o"]),
        ("tar czf a.tgz src", &["czf"]),
        ("tar -cf a src", &["-cf"]),
        ("tar --create --file=a src", &["--create"]),
        ("tar xf a", &["xf"]),
        ("make CC=x", &["CC=x"]),
        ("git zz", &["zz"]),
        ("git --no-pager zz x", &["zz"]),
        ("git whatchanged", &["whatchanged"]),
        ("git rm -rf x", &["rm"]),
        ("git restore x", &["restore"]),
        ("git checkout -- .", &["checkout"]),
        ("git checkout x", &["checkout"]),
        ("git checkout -b x -- y", &["checkout"]),
        ("git checkout-index -fa", &["checkout-index"]),
        ("git clean", &["clean"]),
        ("git remote rm x", &["rm"]),
        ("git stash show --output=x", &["--output=x"]),
        ("sed -i s/a/b/ x", &["-i"]),
        ("sed -ni.bak p x", &["-ni.bak"]),
        ("sed --in-pl=x p y", &["--in-pl=x"]),
        ("sort x -o x", &["-o"]),
        ("sort --o=x y", &["--o=x"]),
        ("curl -sLo x y", &["-sLo"]),
        ("rsync -a --delete a b", &["--delete"]),
        ("git push -f", &["-f"]),
        ("git push --force-with-lease=x", &["--force-with-lease=x"]),
        ("git push origin +main", &["+main"]),
        ("git push origin :main", &[":main"]),
        ("git reset --hard HEAD", &["--hard"]),
        ("git clean -fdx", &["-fdx"]),
        ("git branch -D x", &["-D"]),
        ("git -C /tmp stash drop", &["-C", "drop"]),
        ("git diff --output=x", &["--output=x"]),
    ];
    for (line, expected) in table {
        let split = split(line);
        assert_eq!(split.doubt, None, "{line:?}");
        assert_eq!(split.commands[0].changes, *expected, "{line:?}");
    }
}

#[test]
fn commands_inside_a_doubt_are_found() {
    let lines = [
        "echo $(rm x)",
        "echo `rm x`",
        "echo \"a $(rm x)\"",
        "(rm x)",
        "{ rm x; }",
        "if true; then rm x; fi",
        "FOO=bar rm x",
        "A=1 B=2 rm x",
        "/bin/rm x",
        "'r'm x",
        "r\\m x",
        "\"rm\" x",
        "rm  \t x",
        "rm \\\nx",
        "sudo rm x",
        "sudo -u bob rm x",
        "env A=1 rm x",
        "env -S 'rm x'",
        "sh -c 'rm x'",
        "bash -c 'true; rm x'",
        "timeout 5 rm x",
        "nice -n 5 rm x",
        "nohup /bin/rm x",
        "true;rm x",
        "true\nrm x",
        "true&rm x",
        "true|rm x",
        "git status &>/dev/null rm x",
        "! rm x",
        "find . -exec rm x",
    ];
    for line in lines {
        let faces = faces(line);
        assert!(
            faces
                .iter()
                .any(|face| face.trim_end_matches(')') == "rm x"),
            "{line:?}: {faces:?}"
        );
    }
}

#[test]
fn a_plain_wrapper_is_judged_by_what_it_runs() {
    for line in [
        "timeout 5 npm test",
        "timeout 1.5m npm test",
        "time npm test",
        "nohup npm test",
        "nice npm test",
    ] {
        let split = split(line);
        assert_eq!(split.doubt, None, "{line}");
        let inner = split.commands[0]
            .inner
            .as_ref()
            .map(|inner| inner.written.clone());
        assert_eq!(inner.as_deref(), Some("npm test"), "{line}");
    }
}

#[test]
fn certainty_ends_where_an_expansion_begins() {
    let of = |line: &str| {
        let face = split(line).commands[0].plain.clone();
        face.text[..face.certain].to_owned()
    };
    assert_eq!(of("git push"), "git push");
    assert_eq!(of("git $x y"), "git ");
    assert_eq!(of("git pu'\"'$x"), "git pu\"");
    assert_eq!(of("rm -f *.o"), "rm -f ");
    assert_eq!(of("git \"$x\""), "git ");
    assert_eq!(of("ls ~/x"), "ls ");
    assert_eq!(of("dd if=~/x"), "dd if=");
    assert_eq!(of("git show HEAD~1"), "git show HEAD~1");
}

#[test]
fn hostile_lines_end_soon() {
    let lines = [
        "time ".repeat(3_000),
        "nohup ".repeat(2_000),
        "env ".repeat(4_000),
        "'".repeat(16_000),
        "$(".repeat(8_000),
        "a;".repeat(8_000),
        "sh -c '".repeat(2_000),
        "x".repeat(1_000_000),
    ];
    for line in lines {
        let begun = std::time::Instant::now();
        split(&line);
        assert!(begun.elapsed().as_secs() < 2, "{}", &line[..20]);
    }
}
