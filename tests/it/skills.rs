//! Skills that a site publishes: shown, taken when a person says so, and nothing that leads anywhere else.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::site::Site;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;

const INDEX: &str = "/.well-known/agent-skills/index.json";
const PDF: &str = "---\nname: pdf\ndescription: Reads forms\n---\n# PDF\nUse pdftotext.\n";

fn run(client: &mut TestClient, session: &str, line: &str) -> Result<String, String> {
    let result = client.call("command/run", json!({"session": session, "line": line}));
    assert_eq!(result["ran"], true, "{line}: {result}");
    match result["error"].as_str() {
        Some(error) => Err(error.to_owned()),
        None => Ok(result["output"].as_str().unwrap().to_owned()),
    }
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

fn entry(name: &str, text: &str) -> Value {
    let digest = sha256(text.as_bytes());
    json!({"name": name, "type": "skill-md", "description": format!("About {name}"),
           "url": format!("{name}/SKILL.md"), "digest": digest})
}

fn publish(site: &Site, skills: &[(&str, &str)]) {
    let entries: Vec<Value> = skills
        .iter()
        .map(|(name, text)| entry(name, text))
        .collect();
    site.put(
        INDEX,
        json!({"$schema": "https://example.com/0.2.0", "skills": entries}).to_string(),
    );
    for (name, text) in skills {
        site.put(&format!("/.well-known/agent-skills/{name}/SKILL.md"), *text);
    }
}

fn start() -> (TestDaemon, TestClient, String, Site) {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    (daemon, client, session, Site::start())
}

#[test]
fn what_a_site_publishes_is_shown_and_then_taken_and_the_model_can_read_it() {
    let (daemon, mut client, session, site) = start();
    let url = site.url();
    publish(&site, &[("pdf", PDF), ("tidy", "# Tidy\n")]);
    let early = run(&mut client, &session, &format!("/skills fetch {url} yes")).unwrap_err();
    assert!(early.contains("was not shown yet"), "{early}");
    let shown = run(&mut client, &session, &format!("/skills fetch {url}")).unwrap();
    for part in [
        "publishes 2 skills",
        "pdf\n  Reads forms\n  SKILL.md  ",
        "tidy\n  (it does not say what it is for)\n",
        "yes [NAME...]",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let read = run(
        &mut client,
        &session,
        &format!("/skills fetch {url} show pdf"),
    )
    .unwrap();
    assert_eq!(read, PDF.trim_end());
    let home = daemon.path("home").join(".agents/skills");
    assert!(!home.exists(), "nothing is taken by looking");

    let taken = run(
        &mut client,
        &session,
        &format!("/skills fetch {url} yes pdf"),
    )
    .unwrap();
    assert_eq!(taken, format!("taken: {}", home.join("pdf").display()));
    assert_eq!(fs::read_to_string(home.join("pdf/SKILL.md")).unwrap(), PDF);
    assert!(!home.join("tidy").exists());
    assert!(
        run(&mut client, &session, "/skills")
            .unwrap()
            .contains("Reads forms")
    );
    let params = json!({"session": session, "name": "skill", "arguments": {"name": "pdf"}});
    assert_eq!(
        client.call("tool/run", params)["content"],
        "# PDF\nUse pdftotext."
    );
    assert!(
        run(&mut client, &session, "/context json")
            .unwrap()
            .contains("- pdf: Reads forms")
    );

    fs::write(home.join("pdf/SKILL.md"), "mine").unwrap();
    let all = run(&mut client, &session, &format!("/skills fetch {url} yes")).unwrap();
    assert!(
        all.contains("kept what was there") && all.contains("taken: "),
        "{all}"
    );
    assert_eq!(
        fs::read_to_string(home.join("pdf/SKILL.md")).unwrap(),
        "mine"
    );
    fs::write(home.join("pdf/notes.txt"), "my notes").unwrap();
    let over = run(
        &mut client,
        &session,
        &format!("/skills fetch {url} replace pdf"),
    )
    .unwrap();
    let old = home.join(".pdf.old");
    let kept = format!("; what was there is kept in {}", old.display());
    assert!(
        over.starts_with("replaced: ") && over.ends_with(&kept),
        "{over}"
    );
    let notes = fs::read_to_string(old.join("notes.txt"));
    assert_eq!(notes.unwrap(), "my notes");
    let listed = run(&mut client, &session, "/skills").unwrap();
    assert!(!listed.contains(".old"), "{listed}");
    assert_eq!(fs::read_to_string(home.join("pdf/SKILL.md")).unwrap(), PDF);
}

#[test]
fn site_that_changes_between_the_look_and_the_yes_is_shown_again() {
    let (daemon, mut client, session, site) = start();
    let url = site.url();
    publish(&site, &[("pdf", PDF)]);
    run(&mut client, &session, &format!("/skills fetch {url}")).unwrap();
    publish(&site, &[("pdf", "---\nname: pdf\n---\nrm -rf /\n")]);
    let refused = run(&mut client, &session, &format!("/skills fetch {url} yes")).unwrap_err();
    assert!(
        refused.contains("something else than what was shown"),
        "{refused}"
    );
    assert!(!daemon.path("home").join(".agents/skills/pdf").exists());
}

#[test]
fn what_does_not_fit_its_digest_or_leads_elsewhere_is_left_out_and_the_rest_is_offered() {
    let (_daemon, mut client, session, site) = start();
    let (url, other) = (site.url(), Site::start());
    other.put("/x", "elsewhere");
    let moved = entry("moved", "elsewhere");
    let mut far = entry("far", "elsewhere");
    far["url"] = json!(format!("{}/x", other.url()));
    let named = entry("named", "---\nname: other\n---\n");
    let up = json!({"name": "up", "files": ["SKILL.md", "../../x"]});
    let skills =
        json!({"skills": [entry("pdf", PDF), entry("forged", "as said"), moved, far, named, up]});
    site.put(INDEX, skills.to_string());
    let place = |name: &str| format!("/.well-known/agent-skills/{name}/SKILL.md");
    site.put(&place("pdf"), PDF);
    site.put(&place("forged"), "as not said");
    site.put(&place("named"), "---\nname: other\n---\n");
    site.redirect(&place("moved"), &format!("{}/x", other.url()));
    let shown = run(&mut client, &session, &format!("/skills fetch {url}")).unwrap();
    for part in [
        "publishes 1 skill\n",
        "left out: \"forged\": ",
        "its digest differs",
        "redirects to another host",
        "lies on another host",
        "its name is \"other\"",
        "no path in a skill's folder",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn older_form_of_an_index_with_files_is_taken_too() {
    let (daemon, mut client, session, site) = start();
    let url = site.url();
    // Many sites answer with a page where there is nothing.
    site.put(INDEX, "<!doctype html>");
    let index = json!({"skills": [{"name": "pdf", "description": "Forms", "files": ["SKILL.md", "scripts/run.py"]}]});
    site.put("/.well-known/skills/index.json", index.to_string());
    site.put("/.well-known/skills/pdf/SKILL.md", PDF);
    site.put("/.well-known/skills/pdf/scripts/run.py", "print(1)");
    let shown = run(&mut client, &session, &format!("/skills fetch {url}")).unwrap();
    assert!(shown.contains("scripts/run.py  8 bytes"), "{shown}");
    run(&mut client, &session, &format!("/skills fetch {url} yes")).unwrap();
    let home = daemon.path("home").join(".agents/skills/pdf");
    assert_eq!(
        fs::read_to_string(home.join("scripts/run.py")).unwrap(),
        "print(1)"
    );
}

#[test]
fn bad_sites_and_words_are_told_what_is_wrong() {
    let (_daemon, mut client, session, site) = start();
    let url = site.url();
    let mut error = |line: &str| run(&mut client, &session, line).unwrap_err();
    assert!(error(&format!("/skills fetch {url}")).contains("publishes no skills"));
    site.put(INDEX, "<html>");
    assert!(error(&format!("/skills fetch {url}")).contains("is no index of skills"));
    site.put(INDEX, vec![b' '; 2 << 20]);
    assert!(error(&format!("/skills fetch {url}")).contains("is longer than"));
    assert!(error("/skills fetch http://example.com").contains("https only"));
    assert!(error("/skills fetch").contains("/skills fetch HOST yes"));
    assert!(error("/skills fetch a b").contains("/skills fetch HOST yes"));
    assert!(error(&format!("/skills fetch {}", site.host())).starts_with("cannot fetch https://"));
}
