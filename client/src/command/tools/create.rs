//! `dwell tools create`: a script to begin a tool with, in one of three languages. Needs no daemon; one that runs is told
//! that the file is its user's own.
//! Must never replace a file that nobody said may be replaced.

mod template;

use crate::connect::{Speak, Start};
use crate::error::Failure;
use crate::link::Link;
use crate::out;
use crate::place::{self, Place};
use protocol::approval::{TrustRpcClient, TrustState};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use template::{Language, Param};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The script's file name: NAME.sh, NAME.js or NAME.py; a path is taken as it is
    name: PathBuf,

    /// The parameters: `a` is optional, `a!` required, `a*` a list, `a+` a required list
    params: Vec<String>,

    /// What the tool does
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,

    /// Replace a file that is there
    #[arg(long)]
    force: bool,

    /// For all directories, in ~/.agents/tools, and not for this one alone
    #[arg(long)]
    user: bool,
}

pub(super) async fn run(args: &Args, place: Place) -> Result<(), Failure> {
    if place.remote.is_some() {
        return Err(Failure::usage("a script is written where it is to run")
            .hint("run `dwell tools create` there"));
    }
    let language = Language::of(&args.name).ok_or_else(|| {
        let name = args.name.display();
        Failure::usage(format!("{name} does not end in .sh, .js or .py"))
    })?;
    let params = args.params.iter().map(|word| Param::read(word, language));
    let params = params
        .collect::<Result<Vec<_>, _>>()
        .map_err(Failure::usage)?;
    template::check(&params).map_err(Failure::usage)?;
    let path = path(args)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let description = match &args.description {
        Some(text) if !text.trim().is_empty() => {
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        }
        _ => format!("What {stem} does."),
    };
    let text = language.script(&description, &params);
    write(&path, &text, args.force)?;
    if !args.user && args.name.components().count() == 1 {
        let name = format!(".agents/tools/{}", args.name.display());
        match added(place, &name, &text).await {
            Some(TrustState::Trusted) => out::note("offered here from the next turn on")?,
            _ => out::note(
                "offered once this directory is trusted: `dwell trust yes`, again after each change",
            )?,
        }
    }
    out::line(&path.display().to_string())
}

/// Where the directory stands with this file; none without a daemon that can say.
async fn added(place: Place, name: &str, text: &str) -> Option<TrustState> {
    let link = Link::open(place, Start::Never, Speak::Ours).await.ok()?;
    let cwd = link.place().here().ok()?;
    let (name, text) = (name.to_owned(), text.to_owned());
    let added = link.call(async |client| {
        TrustRpcClient::trust_add(client, cwd.clone(), name.clone(), text.clone()).await
    });
    added.await.ok().map(|trust| trust.state)
}

/// A bare name goes where tools are looked for.
fn path(args: &Args) -> Result<PathBuf, Failure> {
    if args.name.components().count() > 1 {
        return Ok(args.name.clone());
    }
    let base = match args.user {
        false => PathBuf::from(place::directory(Path::new("."))?),
        true => std::env::var_os("HOME")
            .map(PathBuf::from)
            .ok_or_else(|| Failure::new("HOME is not set, so there is no ~/.agents/tools"))?,
    };
    Ok(base.join(".agents/tools").join(&args.name))
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let failure = Failure::new(format!("cannot write {}: {error}", path.display()));
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => failure.hint("--force replaces it"),
            _ => failure,
        }
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).mode(0o755);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}
