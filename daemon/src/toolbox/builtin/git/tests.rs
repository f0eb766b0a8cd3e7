//! What may be run, what counts as reading, and that a hostile repository runs nothing.

use super::super::testing::Bench;
use super::*;
use serde_json::Map;

async fn run(bench: &Bench, command: &str, args: &[&str]) -> Map<String, Value> {
    bench
        .run(tool, json!({"command": command, "args": args}))
        .await
}

fn access_of(command: &str, args: &[&str]) -> Access {
    let arguments = json!({"command": command, "args": args});
    access(arguments.as_object().unwrap())
}

/// A repository with one commit.
async fn repository() -> Bench {
    let mut bench = Bench::new();
    for (name, value) in [
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@b"),
        ("GIT_COMMITTER_NAME", "A"),
        ("GIT_COMMITTER_EMAIL", "a@b"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
    ] {
        bench.env.insert(name.into(), value.into());
    }
    let init = "git init -q -b main . && echo one > file";
    let result = bench.run(execute::tool, json!({"command": init})).await;
    assert_eq!(result["exit_status"], 0, "{result:?}");
    assert_eq!(run(&bench, "add", &["file"]).await["exit_status"], 0);
    let result = run(&bench, "commit", &["-q", "-m", "first; $(touch oops) `id`"]).await;
    assert_eq!(result["exit_status"], 0, "{result:?}");
    bench
}

#[tokio::test]
async fn arguments_are_read_by_no_shell() {
    let bench = repository().await;
    let result = run(&bench, "log", &["--format=%s"]).await;
    assert_eq!(result["content"], "first; $(touch oops) `id`\n");
    assert!(!bench.cwd().join("oops").exists());
}

#[tokio::test]
async fn other_commands_and_options_before_the_command_are_not_allowed() {
    let bench = Bench::new();
    for command in [
        "push",
        "config",
        "-c",
        "-C/",
        "log --oneline",
        "",
        "clone",
        "LOG",
    ] {
        let result = run(&bench, command, &[]).await;
        assert_eq!(result["error"], format!("not allowed: {command}"));
    }
}

#[tokio::test]
async fn no_program_of_the_repository_runs_when_it_is_looked_at() {
    let bench = repository().await;
    let evil = "printf '#!/bin/sh\\ntouch oops\\ncat \"$@\"\\n' > evil && chmod +x evil && p=$PWD/evil \
         && git config diff.external $p && git config core.fsmonitor $p && git config core.pager $p \
         && git config diff.x.textconv $p && git config log.showSignature true && git config gpg.program $p \
         && echo 'file diff=x' > .gitattributes && git add .gitattributes && echo two > file && rm -f oops";
    assert_eq!(
        bench.run(execute::tool, json!({"command": evil})).await["exit_status"],
        0
    );
    let looks: [(&str, &[&str]); 7] = [
        ("status", &[]),
        ("diff", &[]),
        ("diff", &["HEAD"]),
        ("log", &["-p"]),
        ("show", &[]),
        ("blame", &["file"]),
        ("branch", &[]),
    ];
    for (command, args) in looks {
        let result = run(&bench, command, args).await;
        assert_eq!(result["exit_status"], 0, "{command} {result:?}");
        assert!(!bench.cwd().join("oops").exists(), "{command}");
    }
    assert_eq!(access_of("diff", &["--submodule=diff"]), Access::Execute);
    for option in [
        "--ext-diff",
        "--ext-d",
        "--textconv",
        "--output=x",
        "--outp=x",
        "--show-signature",
    ] {
        assert_eq!(
            run(&bench, "log", &["-p", option]).await["error"],
            format!("not allowed: {option}")
        );
    }
    assert_eq!(
        run(&bench, "diff", &["--text", "--", "--output"]).await["exit_status"],
        0
    );
}

/// Commands for a shell that has to succeed.
async fn prepare(bench: &Bench, line: &str) {
    let line = format!("set -e; {line}");
    let result = bench.run(execute::tool, json!({"command": line})).await;
    assert_eq!(result["exit_status"], 0, "{result:?}");
}

/// A repository as it comes out of an archive: each setting, hook and attribute that may run something does.
async fn hostile() -> Bench {
    let bench = repository().await;
    let evil = "printf '#!/bin/sh\\ntouch \"%s/oops\"\\necho \"$0 $@\" >> \"%s/oops\"\\ncat\\n' $PWD $PWD > evil; \
         chmod +x evil; p=$PWD/evil";
    let settings = "for name in core.fsmonitor core.pager core.editor core.sshCommand core.askPass core.gitProxy \
            diff.external diff.x.command diff.x.textconv filter.x.clean filter.x.smudge filter.a.b.clean \
            filter.p.process gpg.program gpg.ssh.program gpg.ssh.defaultKeyCommand interactive.diffFilter \
            pager.status pager.diff pager.log pager.show pager.blame pager.branch sequence.editor \
            credential.helper uploadpack.packObjectsHook merge.x.driver; do git config $name $p; done; \
         git config filter.x.required true; git config filter.p.required true; git config log.showSignature true; \
         git config format.pretty '%GG %G?'; git config status.submoduleSummary true; \
         git config diff.submodule diff; git config alias.st \"!$p\"; git config core.hooksPath $PWD/hooks";
    let files = "printf 'file diff=x filter=x\\nother filter=a.b\\nthird filter=p\\n' > .gitattributes; \
         mkdir hooks; for hook in post-index-change pre-commit post-checkout reference-transaction fsmonitor-watchman; \
            do cp evil hooks/$hook; done; \
         cp hooks/* .git/hooks/";
    // Something signed, that a look at its signature would hand to a program.
    let signed = "tree=$(git rev-parse HEAD^{tree}); \
         commit=$(printf 'tree %s\\nparent %s\\nauthor A <a@b> 1 +0000\\ncommitter A <a@b> 1 +0000\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----\\n\\nsigned\\n' \
            $tree $(git rev-parse HEAD) | git hash-object -t commit -w --stdin); git update-ref HEAD $commit";
    // A submodule with settings of its own, which says that it wants to be looked into.
    let submodule = "git init -q -b main sub; echo f > sub/f; git -C sub add f; git -C sub commit -q -m x; \
         git add sub 2>/dev/null; printf '[submodule \"sub\"]\\n path = sub\\n url = x\\n ignore = none\\n' > .gitmodules; \
         git config submodule.sub.ignore none; git config submodule.sub.active true; \
         for name in core.fsmonitor diff.external gpg.program filter.z.clean; do git -C sub config $name $p; done; \
         echo '* filter=z' > sub/.git/info/attributes; touch -d '+5 seconds' sub/f; \
         echo dirty > sub/new";
    prepare(
        &bench,
        &format!(
            "{evil}; {submodule}; echo one > other; echo one > third; \
         git add evil other third; git commit -qm second; {signed}; {files}; {settings}"
        ),
    )
    .await;
    prepare(
        &bench,
        "touch -d '+5 seconds' file other third; echo two >> file; rm -f oops",
    )
    .await;
    bench
}

#[tokio::test]
async fn a_hostile_repository_runs_nothing_when_it_is_looked_at() {
    let bench = hostile().await;
    let looks: [(&str, &[&str]); 21] = [
        ("status", &[]),
        ("status", &["--porcelain=v2", "-uall"]),
        ("diff", &[]),
        ("diff", &["HEAD"]),
        ("diff", &["--stat", "HEAD~1"]),
        ("diff", &["--cached"]),
        ("diff", &["--", "other", "third"]),
        ("log", &[]),
        ("log", &["-p", "--stat"]),
        ("log", &["-S", "one", "--follow", "--", "file"]),
        ("log", &["--format=%s", "--all"]),
        ("show", &[]),
        ("show", &["HEAD:file"]),
        ("show", &["--stat", "HEAD~1"]),
        ("blame", &["file"]),
        ("blame", &["other"]),
        ("blame", &["third"]),
        ("branch", &[]),
        ("branch", &["-a"]),
        ("branch", &["--show-current"]),
        ("branch", &["--list"]),
    ];
    for (command, args) in looks {
        assert_eq!(access_of(command, args), Access::Read, "{command} {args:?}");
        let result = run(&bench, command, args).await;
        let ran = std::fs::read_to_string(bench.cwd().join("oops")).unwrap_or_default();
        assert_eq!(ran, "", "{command} {args:?}: {result:?}");
        assert_eq!(result["exit_status"], 0, "{command} {args:?} {result:?}");
    }
    for verbose in ["-v", "-sv", "--verb"] {
        let result = run(&bench, "status", &[verbose]).await;
        assert_eq!(result["error"], format!("not allowed: {verbose}"));
    }
    prepare(&bench, "git config filter.a=b.clean $PWD/evil; rm -f oops").await;
    for command in ["status", "diff"] {
        let result = run(&bench, command, &[]).await;
        assert!(
            result["error"].as_str().unwrap().contains("a=b"),
            "{result:?}"
        );
        assert!(!bench.cwd().join("oops").exists(), "{command}");
    }
    // That the traps work at all: without any of it they run.
    let trapped =
        "git config --unset filter.a=b.clean; git status >/dev/null 2>&1 || true; test -s oops";
    prepare(&bench, trapped).await;
    let shown = run(&bench, "diff", &["--", "file"]).await;
    assert!(
        shown["content"].as_str().unwrap().contains("+two"),
        "{shown:?}"
    );
}

#[tokio::test]
async fn a_filter_of_the_users_own_still_counts() {
    let mut bench = repository().await;
    let home = bench.cwd().join("home");
    std::fs::create_dir(&home).unwrap();
    bench.env.insert("HOME".into(), home.display().to_string());
    bench
        .env
        .insert("XDG_CONFIG_HOME".into(), home.display().to_string());
    prepare(
        &bench,
        "git config --global filter.up.clean 'tr a-z A-Z'; echo 'file filter=up' > .gitattributes; \
         touch -d '+5 seconds' file",
    )
    .await;
    let shown = run(&bench, "diff", &["--", "file"]).await;
    assert!(
        shown["content"].as_str().unwrap().contains("+ONE"),
        "{shown:?}"
    );
}

#[tokio::test]
async fn nothing_waits_for_an_editor() {
    let bench = repository().await;
    bench.write("file", "two\n");
    let result = run(&bench, "commit", &["-a"]).await;
    assert_eq!(result["exit_status"], 1);
    assert!(
        result["content"]
            .as_str()
            .unwrap()
            .contains("empty commit message"),
        "{result:?}"
    );
}

#[test]
fn only_looking_counts_as_reading() {
    let reads: [(&str, &[&str]); 4] = [
        ("status", &["-s"]),
        ("diff", &["HEAD~1", "--", "src/a.rs"]),
        ("branch", &["-a"]),
        ("log", &["--oneline", "a..b"]),
    ];
    for (command, args) in reads {
        assert_eq!(access_of(command, args), Access::Read, "{command} {args:?}");
    }
    let others: [(&str, &[&str]); 7] = [
        ("branch", &["new"]),
        ("branch", &["-D", "x"]),
        ("commit", &[]),
        ("diff", &["--no-index", "a", "b"]),
        ("diff", &["/etc/passwd", "a"]),
        ("log", &["--format=%GG"]),
        ("show", &["../../x"]),
    ];
    for (command, args) in others {
        assert_eq!(
            access_of(command, args),
            Access::Execute,
            "{command} {args:?}"
        );
    }
}

/// A folder `in` with a repository, and one `beside` that it is none of its business to show; then the line runs in `in`.
async fn two(line: &str) -> Bench {
    let mut bench = repository().await;
    let make = |name: &str, text: &str| {
        format!(
            "git init -q -b main {name}; echo {text} > {name}/file; git -C {name} add file; \
             git -C {name} commit -qm {text}"
        )
    };
    let (other, own) = (make("beside", "topsecret"), make("in", "plain"));
    prepare(&bench, &format!("{other}; {own}; cd in; {line}")).await;
    bench.enter("in");
    bench
}

#[tokio::test]
async fn a_repository_that_leads_elsewhere_is_not_looked_at_unasked() {
    let leads = [
        "git config core.worktree $PWD/../beside",
        "rm -rf .git; echo gitdir: ../beside/.git > .git",
        "rm -rf .git; ln -s ../beside/.git .git",
        "echo ../../beside/.git > .git/commondir",
        "rm -rf .git/refs; ln -s ../../beside/.git/refs .git/refs",
        "rm -rf .git/objects; ln -s ../../beside/.git/objects .git/objects",
        "echo ../../../beside/.git/objects > .git/objects/info/alternates",
        "mv .git/* .; rm -rf .git; git config core.bare false; git config core.worktree $PWD/../beside",
    ];
    for lead in leads {
        let bench = two(lead).await;
        let looks: [(&str, &[&str]); 3] = [("diff", &[]), ("log", &["-p"]), ("status", &[])];
        for (command, args) in looks {
            let result = run(&bench, command, args).await;
            let error = result["error"].as_str().unwrap_or_default();
            assert!(error.contains("elsewhere"), "{lead}, {command}: {result:?}");
            assert!(error.contains("run git by execute"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_repository_whose_store_lies_elsewhere_for_good_reasons_is_looked_at() {
    let trees = [
        "cd ..; rm -rf in; git -C beside worktree add -q ../in",
        "cd ..; rm -rf in; git -c protocol.file.allow=always submodule --quiet add ./beside in",
        "cd ..; rm -rf in; git clone -q --bare beside in",
        "git config user.name x",
    ];
    for tree in trees {
        let mut bench = two(tree).await;
        let result = run(&bench, "log", &["--format=%s"]).await;
        assert_eq!(
            result.get("exit_status"),
            Some(&json!(0)),
            "{tree}: {result:?}"
        );
        std::fs::create_dir_all(bench.cwd().join("objects/deep")).unwrap();
        bench.enter("objects/deep");
        let result = run(&bench, "log", &["--format=%s"]).await;
        assert_eq!(
            result.get("exit_status"),
            Some(&json!(0)),
            "{tree}, deep: {result:?}"
        );
    }
}

#[tokio::test]
async fn a_repository_that_a_person_points_at_is_looked_at() {
    let mut bench = two("rm -rf .git").await;
    let git_dir = bench.cwd().join("../beside/.git").display().to_string();
    bench.env.insert("GIT_DIR".into(), git_dir);
    let result = run(&bench, "log", &["--format=%s"]).await;
    assert_eq!(result["content"], "topsecret\n", "{result:?}");
}
