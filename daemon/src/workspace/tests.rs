//! What sessions of a directory get from it.

use super::{Places, Workspace, Workspaces};
use crate::toolbox::tool::{Access, Tool};
use protocol::approval::TrustState;
use protocol::tool::Policy::{self, Allow, Ask, Deny};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

struct Place {
    root: TempDir,
    workspaces: Workspaces,
}

impl Place {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        fs::create_dir_all(root.path().join("work")).unwrap();
        fs::create_dir_all(root.path().join("home")).unwrap();
        let places = Places {
            home: root.path().join("home"),
            state_dir: root.path().join("state"),
            script_tools: crate::toolbox::source::script::load::Settings::default(),
            plugins: super::plugins::Means::default(),
            servers: super::servers::Means::default(),
            hooks: super::hooks::Users::new(Vec::new(), || Ok((Vec::new(), Vec::new()))),
        };
        Self {
            root,
            workspaces: Workspaces::new(places),
        }
    }

    fn cwd(&self) -> PathBuf {
        self.root.path().join("work")
    }

    fn workspace(&self) -> Arc<Workspace> {
        self.workspaces.get(&self.cwd())
    }

    fn put(&self, folder: &str, text: &str) {
        let folder = self.root.path().join(folder).join(".agents");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("permissions.json"), text).unwrap();
    }

    fn written(&self) -> String {
        fs::read_to_string(self.cwd().join(".agents/permissions.json")).unwrap()
    }

    async fn trust(&self, allow: bool) {
        self.workspaces
            .trust()
            .answer(&self.cwd(), allow)
            .await
            .unwrap();
    }

    async fn run(&self, command: &str) -> Policy {
        let tool = Tool::new("execute", "")
            .access(Access::Execute)
            .shell("command");
        let arguments = json!({"command": command});
        let permissions = self.workspace().permissions().await;
        let arguments = arguments.as_object().unwrap();
        permissions
            .judge(&tool, arguments, &self.cwd(), &self.cwd())
            .await
            .policy
    }
}

#[tokio::test]
async fn sessions_of_a_directory_share_one_workspace_while_one_lives() {
    let place = Place::new();
    let (first, second) = (place.workspace(), place.workspace());
    assert!(Arc::ptr_eq(&first, &second));
    assert!(!Arc::ptr_eq(
        &first,
        &place.workspaces.get(place.root.path())
    ));
    let old = Arc::downgrade(&first);
    drop((first, second));
    assert!(old.upgrade().is_none());
    assert!(!place.workspace().toolbox().tools().is_empty());
}

#[tokio::test]
async fn every_built_in_tool_can_be_used() {
    let place = Place::new();
    assert_eq!(place.workspace().toolbox().problems(), Vec::<String>::new());
}

#[tokio::test]
async fn a_workspaces_allow_counts_once_it_is_trusted_and_until_it_changes() {
    let place = Place::new();
    place.put("work", r#"{"execute": {"ls": "allow", "rm *": "deny"}}"#);
    assert_eq!((place.run("ls").await, place.run("rm x").await), (Ask, Ask));
    place.trust(true).await;
    assert_eq!(
        (place.run("ls").await, place.run("rm x").await),
        (Allow, Deny)
    );
    place.put("work", r#"{"execute": {"ls": "allow", "make": "allow"}}"#);
    assert_eq!((place.run("ls").await, place.run("make").await), (Ask, Ask));
    place.trust(false).await;
    assert_eq!(place.run("ls").await, Ask);
}

#[tokio::test]
async fn the_users_file_needs_no_trust() {
    let place = Place::new();
    place.put("home", r#"{"execute": {"ls": "allow"}}"#);
    assert_eq!(place.run("ls").await, Allow);
    let home = place
        .workspaces
        .get(&place.root.path().join("home"))
        .permissions()
        .await;
    assert_eq!(home.problems(), Vec::<String>::new());
}

#[tokio::test]
async fn before_trust_nothing_of_a_directory_counts_be_it_broken() {
    let place = Place::new();
    place.put("home", r#"{"execute": {"ls": "allow"}}"#);
    for text in [r#"{"execute": {"ls": "deny"}}"#, r#"{"*": "ask"}"#, "{\n{"] {
        place.put("work", text);
        assert_eq!(place.run("ls").await, Allow, "{text}");
        assert_eq!(
            place.workspace().problems().await,
            Vec::<String>::new(),
            "{text}"
        );
    }
    let trust = place.workspace().trust().await;
    let broken = trust.files[0].problem.as_deref().unwrap_or_default();
    assert!(broken.contains("line 2"), "{broken}");
    place.trust(false).await;
    assert_eq!(place.run("ls").await, Allow);
}

#[tokio::test]
async fn a_trusted_file_goes_on_to_forbid_when_something_beside_it_changes() {
    let place = Place::new();
    place.put("work", r#"{"execute": {"ls": "allow", "rm *": "deny"}}"#);
    place.trust(true).await;
    let tools = place.cwd().join(".agents/tools");
    fs::create_dir_all(&tools).unwrap();
    fs::write(tools.join("x"), "new").unwrap();
    assert_eq!(place.workspace().trust().await.state, TrustState::Changed);
    assert_eq!(
        (place.run("ls").await, place.run("rm x").await),
        (Ask, Deny)
    );
    place.trust(false).await;
    assert_eq!(place.run("rm x").await, Ask);
}

#[tokio::test]
async fn a_malformed_file_that_is_trusted_is_told_and_everything_asks() {
    let place = Place::new();
    place.put("home", r#"{"execute": {"ls": "allow"}}"#);
    place.put("work", "{");
    place.trust(true).await;
    assert_eq!(place.run("ls").await, Ask);
    let problems = place.workspace().problems().await;
    assert!(
        problems.len() == 1
            && problems[0].contains("work/.agents/permissions.json")
            && problems[0].contains("line 1"),
        "{problems:?}"
    );
    let permissions = place.workspace().permissions().await;
    assert_eq!(
        place.workspace().toolbox().list(&permissions).problems,
        problems
    );
    fs::remove_file(place.cwd().join(".agents/permissions.json")).unwrap();
    let folder = place.cwd().join(".agents/permissions.json");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("x"), "").unwrap();
    place.trust(true).await;
    assert_eq!(place.run("ls").await, Ask);
}

#[tokio::test]
async fn always_is_written_where_nothing_was_and_counts_at_once() {
    let place = Place::new();
    place
        .workspace()
        .allow_always("execute", "npm test")
        .await
        .unwrap();
    assert_eq!(place.run("npm test").await, Allow);
    assert_eq!(place.workspace().trust().await.state, TrustState::Trusted);
    place
        .workspace()
        .allow_always("execute", "make")
        .await
        .unwrap();
    place.workspace().allow_always("write", "a").await.unwrap();
    assert_eq!(place.run("make").await, Allow);
    let expected =
        json!({"execute": {"npm test": "allow", "make": "allow"}, "write": {"a": "allow"}});
    assert_eq!(
        serde_json::from_str::<Value>(&place.written()).unwrap(),
        expected
    );
}

#[tokio::test]
async fn always_counts_where_an_older_decision_was_about_files_that_are_gone() {
    let place = Place::new();
    let tool = place.cwd().join(".agents/tools/x");
    fs::create_dir_all(tool.parent().unwrap()).unwrap();
    fs::write(&tool, "old").unwrap();
    place.trust(false).await;
    fs::remove_file(&tool).unwrap();
    place
        .workspace()
        .allow_always("execute", "make")
        .await
        .unwrap();
    assert_eq!(place.run("make").await, Allow);
}

#[tokio::test]
async fn always_in_the_home_directory_is_the_users_own_rule() {
    let place = Place::new();
    place.put("home", r#"{"execute": {"ls": "allow"}}"#);
    let home = place.workspaces.get(&place.root.path().join("home"));
    home.allow_always("execute", "make").await.unwrap();
    assert_eq!(
        (place.run("make").await, place.run("ls").await),
        (Allow, Allow)
    );
}

#[tokio::test]
async fn always_keeps_other_entries_and_their_order() {
    let place = Place::new();
    place.put(
        "work",
        r#"{"zeta": "deny", "execute": "ask", "alpha": {"b": "ask", "a": "deny"}}"#,
    );
    place.trust(true).await;
    place
        .workspace()
        .allow_always("execute", "ls")
        .await
        .unwrap();
    let expected = r#"{
  "zeta": "deny",
  "execute": {
    "*": "ask",
    "ls": "allow"
  },
  "alpha": {
    "b": "ask",
    "a": "deny"
  }
}
"#;
    assert_eq!(place.written(), expected);
    assert_eq!(place.run("ls").await, Allow);
}

#[tokio::test]
async fn always_never_makes_other_changes_trusted() {
    let place = Place::new();
    place.put("work", r#"{"execute": {"ls": "allow"}}"#);
    place.trust(true).await;
    let tools = place.cwd().join(".agents/tools");
    fs::create_dir_all(&tools).unwrap();
    fs::write(tools.join("x"), "new").unwrap();
    let refused = place
        .workspace()
        .allow_always("execute", "make")
        .await
        .unwrap_err();
    assert!(refused.contains("not trusted"), "{refused}");
    assert_eq!(place.written(), r#"{"execute": {"ls": "allow"}}"#);
    assert_eq!(place.workspace().trust().await.state, TrustState::Changed);
}

#[tokio::test]
async fn always_leaves_a_malformed_file_and_a_link_alone() {
    let place = Place::new();
    place.put("work", "{");
    place.trust(true).await;
    assert!(
        place
            .workspace()
            .allow_always("execute", "ls")
            .await
            .is_err()
    );
    assert_eq!(place.written(), "{");
    let path = place.cwd().join(".agents/permissions.json");
    fs::remove_file(&path).unwrap();
    fs::write(place.root.path().join("far"), "{}").unwrap();
    std::os::unix::fs::symlink("../../far", &path).unwrap();
    place.trust(true).await;
    let refused = place
        .workspace()
        .allow_always("execute", "ls")
        .await
        .unwrap_err();
    assert!(refused.contains("is a link"), "{refused}");
    assert_eq!(
        fs::read_to_string(place.root.path().join("far")).unwrap(),
        "{}"
    );
}

#[tokio::test]
async fn answers_at_once_are_all_written() {
    let place = Place::new();
    let writes = (0..20).map(|n| {
        let workspace = place.workspace();
        tokio::spawn(async move {
            workspace
                .allow_always("execute", &format!("make {n}"))
                .await
        })
    });
    // Whoever reads meanwhile finds a whole file, or none yet.
    let path = place.cwd().join(".agents/permissions.json");
    let writes = writes.collect::<Vec<_>>();
    let done = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&done);
    let reader = tokio::task::spawn_blocking(move || {
        let mut whole = 0;
        while !over.load(Ordering::Relaxed) {
            if let Ok(text) = fs::read_to_string(&path) {
                serde_json::from_str::<Value>(&text).unwrap();
                whole += 1;
            }
        }
        whole
    });
    for write in writes {
        write.await.unwrap().unwrap();
    }
    done.store(true, Ordering::Relaxed);
    assert!(reader.await.unwrap() > 0);
    let written: Value = serde_json::from_str(&place.written()).unwrap();
    assert_eq!(written["execute"].as_object().unwrap().len(), 20);
    assert_eq!(place.run("make 7").await, Allow);
}

#[tokio::test]
async fn a_skill_that_is_a_link_out_of_the_directory_is_not_read_and_that_is_told() {
    let place = Place::new();
    let own = place.cwd().join(".agents/skills");
    let users = place.root.path().join("home/.agents/skills");
    let text = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nbody\n");
    fs::create_dir_all(own.join("out")).unwrap();
    fs::create_dir_all(own.join("kept")).unwrap();
    fs::create_dir_all(users.join("linked")).unwrap();
    fs::write(place.root.path().join("elsewhere.md"), text("elsewhere")).unwrap();
    fs::write(place.cwd().join("beside.md"), text("beside")).unwrap();
    symlink("../../../../elsewhere.md", own.join("out/SKILL.md")).unwrap();
    symlink("../../../beside.md", own.join("kept/SKILL.md")).unwrap();
    // A user's own files lie where the user wants them.
    symlink("../../../../elsewhere.md", users.join("linked/SKILL.md")).unwrap();
    let skills = place.workspace().skills().await;
    let names: Vec<_> = skills.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["beside", "elsewhere"]);
    let elsewhere = skills.iter().find(|skill| skill.name == "elsewhere");
    assert!(elsewhere.unwrap().folder.starts_with(&users));
    let problems = place.workspace().problems().await;
    assert!(
        problems[0].contains("out/SKILL.md leads out of"),
        "{problems:?}"
    );
    assert_eq!(problems.len(), 1);
}

#[tokio::test]
async fn an_edit_of_agents_md_is_seen_at_once() {
    let place = Place::new();
    assert_eq!(place.workspace().guidance().await, None);
    fs::write(place.root.path().join("AGENTS.md"), "one").unwrap();
    assert_eq!(place.workspace().guidance().await.as_deref(), Some("one"));
    fs::write(place.cwd().join("AGENTS.md"), "two").unwrap();
    assert_eq!(place.workspace().guidance().await.as_deref(), Some("two"));
}
