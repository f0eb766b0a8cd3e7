//! A folder and a port that records, for tests of handlers alone.

use crate::toolbox::gate::Run;
use crate::toolbox::tool::{Access, Call, Tool};
use crate::toolbox::{BoxFuture, CallPort, Question, Toolbox, Verdict, Via};
use protocol::approval::Answer;
use protocol::id::CallId;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub(in crate::toolbox) struct Bench {
    folder: TempDir,
    below: PathBuf,
    port: Arc<Port>,
    pub(in crate::toolbox) env: BTreeMap<String, String>,
}

impl Bench {
    pub(in crate::toolbox) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        std::fs::create_dir(folder.path().join("home")).unwrap();
        let home = folder.path().join("home").to_string_lossy().into_owned();
        let env = [
            ("HOME".to_owned(), home),
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ];
        Self {
            folder,
            below: PathBuf::new(),
            port: Arc::default(),
            env: env.into(),
        }
    }

    pub(in crate::toolbox) fn cwd(&self) -> PathBuf {
        let work = self.folder.path().join("work");
        // What is joined with nothing ends in a slash.
        match self.below.as_os_str().is_empty() {
            true => work,
            false => work.join(&self.below),
        }
    }

    /// From now on tools work in this folder of it.
    pub(in crate::toolbox) fn enter(&mut self, folder: &str) {
        self.below.push(folder);
    }

    pub(in crate::toolbox) fn spill_dir(&self) -> PathBuf {
        self.folder.path().join("spill")
    }

    pub(in crate::toolbox) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.cwd().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(in crate::toolbox) fn call(&self) -> Call {
        Call::detached(
            self.cwd(),
            self.env.clone(),
            self.spill_dir(),
            self.port.clone(),
        )
    }

    /// What was streamed so far.
    pub(in crate::toolbox) fn output(&self) -> String {
        self.port.output.lock().unwrap().clone()
    }

    /// Runs a tool through the gate; every question is answered with yes.
    pub(in crate::toolbox) async fn run(
        &self,
        tool: impl FnOnce() -> Tool,
        arguments: Value,
    ) -> Map<String, Value> {
        self.run_until(tool, arguments, CancellationToken::new())
            .await
    }

    pub(in crate::toolbox) async fn run_until(
        &self,
        tool: impl FnOnce() -> Tool,
        arguments: Value,
        cancel: CancellationToken,
    ) -> Map<String, Value> {
        let tool = tool();
        let name = tool.name().to_owned();
        let mut toolbox = Toolbox::new();
        toolbox.add(tool);
        let run = Run {
            session: "test".into(),
            call: "c1".into(),
            name,
            arguments,
            cwd: self.cwd(),
            env: Arc::new(self.env.clone()),
            cancel,
            spill_dir: self.spill_dir(),
            port: self.port.clone(),
            permissions: Arc::default(),
        };
        Arc::new(toolbox).run(run).await.result
    }
}

#[derive(Default)]
struct Port {
    output: Mutex<String>,
}

impl CallPort for Port {
    fn ask<'a>(&'a self, _: Question<'a>) -> BoxFuture<'a, Result<Verdict, String>> {
        Box::pin(async {
            Ok(Verdict {
                answer: Answer::Allow,
                reason: None,
                grant: None,
            })
        })
    }
    fn started<'a>(&'a self, _: &'a CallId, _: Access) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
    fn output(&self, _: &CallId, text: &str) {
        self.output.lock().unwrap().push_str(text);
    }
    fn child<'a>(
        &'a self,
        _: &'a CallId,
        _: Via,
        _: &'a str,
        _: &'a Value,
    ) -> BoxFuture<'a, Result<CallId, String>> {
        Box::pin(async { Ok("c1/1".into()) })
    }
    fn child_done<'a>(
        &'a self,
        _: &'a CallId,
        _: &'a Map<String, Value>,
        _: u64,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
    fn warn(&self, _: &str) {}
}
