//! `/skills`: what the model can read up on here, and what a site publishes for that. Nothing is taken that was not shown.

use super::registry::{Candidates, Command, Failure, Invocation, Ran};
use super::table::table;
use crate::workspace::skills::{Existing, Offer, Skill, Taken};

const FETCH: &str = "/skills fetch HOST shows what a site publishes, /skills fetch HOST yes [NAME...] takes it, \
                     replace NAME... puts it over what you have, show NAME prints a skill";

pub(super) fn command() -> Command {
    let about =
        "list the skills that the model can read, or fetch HOST: those that a site publishes";
    Command::new("skills", about, run).completing(Candidates::fixed(&["fetch"]))
}

async fn run(invocation: Invocation) -> Ran {
    let words: Vec<&str> = invocation
        .argument()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    match words[..] {
        [] => list(&invocation).await,
        ["fetch", site] => offer(&invocation, site).await,
        ["fetch", site, "show", name] => show(&invocation, site, name).await,
        ["fetch", site, "yes", ref names @ ..] => {
            take(&invocation, site, names, Existing::Keep).await
        }
        ["fetch", site, "replace", ref names @ ..] if !names.is_empty() => {
            take(&invocation, site, names, Existing::Replace).await
        }
        _ => Err(Failure(FETCH.to_owned())),
    }
}

async fn list(invocation: &Invocation) -> Ran {
    let skills = invocation.sessions.skills(&invocation.session).await?;
    if skills.is_empty() {
        return Ok(format!(
            "no skills: they are .agents/skills/NAME/SKILL.md, here or in your home; {FETCH}"
        ));
    }
    let rows = skills.into_iter().map(|skill| {
        let place = skill.folder.display().to_string();
        [skill.name, skill.description, place]
    });
    Ok(table(&rows.collect::<Vec<_>>()))
}

async fn offer(invocation: &Invocation, site: &str) -> Ran {
    let sessions = &invocation.sessions;
    let offer = sessions.offered_skills(&invocation.session, site).await?;
    let here = sessions.skills(&invocation.session).await?;
    sessions
        .skills_were_shown(&invocation.session, &offer)
        .await?;
    Ok(shown(&offer, &here, site))
}

fn shown(offer: &Offer, here: &[Skill], site: &str) -> String {
    let mut text = format!(
        "{} publishes {}",
        offer.site,
        count(offer.skills.len(), "skill")
    );
    for skill in &offer.skills {
        let known = here.iter().any(|one| one.name == skill.name);
        let known = if known {
            "  (you have one of that name)"
        } else {
            ""
        };
        let about = match &*skill.description {
            "" => "(it does not say what it is for)",
            about => about,
        };
        text.push_str(&format!("\n\n{}{known}\n  {about}", skill.name));
        for (path, bytes) in &skill.files {
            text.push_str(&format!("\n  {path}  {} bytes", bytes.len()));
        }
    }
    for why in &offer.refused {
        text.push_str(&format!("\n\nleft out: {why}"));
    }
    if !offer.skills.is_empty() {
        text.push_str(&format!(
            "\n\nThe model will read and follow what stands in them. To take them: /skills fetch {site} yes [NAME...]; \
             to read one first: /skills fetch {site} show NAME"
        ));
    }
    text
}

async fn show(invocation: &Invocation, site: &str, name: &str) -> Ran {
    let sessions = &invocation.sessions;
    let offer = sessions.offered_skills(&invocation.session, site).await?;
    let found = offer.skills.iter().find(|skill| skill.name == name);
    let skill = found.ok_or_else(|| Failure(format!("{} offers no skill {name:?}", offer.site)))?;
    let text = skill
        .files
        .get("SKILL.md")
        .map(|bytes| String::from_utf8_lossy(bytes));
    Ok(text.unwrap_or_default().into_owned())
}

async fn take(invocation: &Invocation, site: &str, names: &[&str], existing: Existing) -> Ran {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let sessions = &invocation.sessions;
    let taken = sessions
        .take_skills(&invocation.session, site, &names, existing)
        .await?;
    let lines = taken.iter().map(|one| told(one, site));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

fn told(taken: &Taken, site: &str) -> String {
    match taken {
        Taken::New(place) => format!("taken: {}", place.display()),
        Taken::Replaced { place, kept: None } => format!("replaced: {}", place.display()),
        Taken::Replaced {
            place,
            kept: Some(old),
        } => format!(
            "replaced: {}; what was there is kept in {}",
            place.display(),
            old.display()
        ),
        Taken::Kept(place) => {
            let name = place.file_name().unwrap_or_default().to_string_lossy();
            format!(
                "kept what was there: {}; /skills fetch {site} replace {name} puts the new one over it",
                place.display()
            )
        }
    }
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}
