//! What a model reads of `run_code`: the rules, then its tools as declarations in TypeScript, as many as fit. Pure.
//! Must never differ between two runs for the same tools: the bytes are in a provider's cache.

mod types;

use super::limits::Limits;
use crate::presentation::input_schema_of;
use crate::toolbox::tool::Tool;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many characters the declarations may have.
const ROOM: usize = 16_000;
/// A tool's description beyond this helps nobody to call it.
const LONGEST: usize = 600;

/// Stands before every declaration.
const COMMON: &str = "\
/** What a tool gives when nothing more is known of it: log one to see its members. */
type Result = { ok: true; [key: string]: any };
declare class ToolFailure extends Error {
  code: string; tool: string; retryable: boolean; details?: any;
}
";
const SEARCH: &str = "\
/** Finds tools that are not declared here, with the schemas of their inputs. */
declare function search_tools(query: string): Promise<Result>;
";

const OPEN: &str = "declare const tools: {\n";
const CLOSE: &str = "};\n";
/// More than the first line has.
const HEAD: usize = 100;
/// How many tools in a row may be too long for what is left before no more are tried.
const MISSES: usize = 20;

pub(super) struct Declarations {
    pub(super) complete: bool,
    text: String,
}

impl Declarations {
    /// Of these tools, in their order. When not all fit, each source has its turn, one tool after the other.
    pub(super) fn of(tools: &[Arc<Tool>]) -> Self {
        let frame = length(COMMON) + length(OPEN) + length(CLOSE) + HEAD;
        let room = ROOM - frame;
        let (head, search, members) = match all(tools, room) {
            Some(members) => {
                let head = format!("// COMPLETE: all {} tools are declared.\n", tools.len());
                (head, "", members)
            }
            None => {
                let chosen = in_turn(tools, room - length(SEARCH));
                let (some, of) = (chosen.len(), tools.len());
                let head = format!(
                    "// PARTIAL: {some} of {of} tools are declared; search_tools finds the others.\n"
                );
                (head, SEARCH, chosen.into_values().collect())
            }
        };
        Self {
            complete: search.is_empty(),
            text: format!("{head}{COMMON}{search}{OPEN}{members}{CLOSE}"),
        }
    }

    /// What a model reads.
    pub(super) fn description(&self, limits: &Limits) -> String {
        let Limits {
            wall_ms,
            calls,
            in_flight,
            memory,
            ..
        } = limits;
        let (seconds, mebibytes) = (*wall_ms as f64 / 1000.0, memory / (1024 * 1024));
        let text = &self.text;
        format!(
            "\
Runs a program that calls tools, for many calls in one go or large results of which little matters.
- Plain JavaScript, the body of an async function: await calls, and return what you want to see, as JSON.
- tools.NAME(input) takes one object and gives a promise. Make independent calls at once with Promise.all.
- A call that fails throws a ToolFailure. Catch it to go on; uncaught, run_code fails as the call did.
- console.log(...) comes back as logs. A result beyond 64 KiB is cut: return the part that matters.
- A call may wait for a person's approval. Who says no makes it a ToolFailure with the code \"denied\".
- No types, imports, fetch, timers, files or network: the tools are all there is. Nothing is kept between programs.
- At most {seconds} s, {calls} calls, {in_flight} at once, {mebibytes} MiB. All calls made are listed in the answer.
- A name that is no identifier is called as tools[\"a-b\"](input) or tools.a_b(input).
```ts
{text}```"
        )
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// All declarations, if they fit. Stops where they do not: thousands of tools take a while.
fn all(tools: &[Arc<Tool>], room: usize) -> Option<String> {
    let mut members = String::new();
    let mut used = 0;
    for tool in tools {
        let text = declaration(tool);
        used += length(&text);
        if used > room {
            return None;
        }
        members.push_str(&text);
    }
    Some(members)
}

/// Those that fit when every source has its turn, by their place. Ends when several in a row were too long.
fn in_turn(tools: &[Arc<Tool>], mut room: usize) -> BTreeMap<usize, String> {
    let mut sources: Vec<(&str, Vec<usize>)> = Vec::new();
    for (at, tool) in tools.iter().enumerate() {
        match sources.iter_mut().find(|(name, _)| *name == tool.origin()) {
            Some((_, of)) => of.push(at),
            None => sources.push((tool.origin(), vec![at])),
        }
    }
    let rounds = sources.iter().map(|(_, of)| of.len()).max().unwrap_or(0);
    let turns =
        (0..rounds).flat_map(|round| sources.iter().filter_map(move |(_, of)| of.get(round)));
    let mut chosen = BTreeMap::new();
    let mut missed = 0;
    for at in turns {
        let text = declaration(&tools[*at]);
        let length = length(&text);
        if length <= room {
            room -= length;
            missed = 0;
            chosen.insert(*at, text);
        } else {
            missed += 1;
            if missed > MISSES {
                break;
            }
        }
    }
    chosen
}

fn declaration(tool: &Tool) -> String {
    member(
        tool.name(),
        tool.description(),
        &input_schema_of(tool),
        None,
    )
}

/// One tool as a member of `tools`.
fn member(name: &str, description: &str, input: &Value, output: Option<&Value>) -> String {
    let needed = input["required"]
        .as_array()
        .is_some_and(|names| !names.is_empty());
    let optional = if needed { "" } else { "?" };
    let (name, input) = (types::property(name), types::of(input, 1));
    let output = output.map_or_else(|| "Result".to_owned(), |output| types::of(output, 1));
    let comment = types::comment(description, LONGEST, 1);
    format!("{comment}  {name}(input{optional}: {input}): Promise<{output}>;\n")
}

#[cfg(test)]
mod tests;
