//! Loaded models and what they last read: building, answering, forgetting. Runs on the one thread that computes.
//! Must never answer for a file that has changed since it was loaded.

use crate::calls::Calls;
use crate::chat;
use crate::files::Variables;
use crate::model::{Cache, Model, Stop, checkpoint, gguf::Gguf, legacy};
use crate::provider::{Choice, PROVIDERS};
use crate::sample::{Sampler, Taste};
use crate::template::{Source, Template};
use crate::tokenizer::Tokenizer;
use crate::wire::Failure;
use protocol::plugin::{BuildParams, BuildResult, FetchParams, ProviderNotification};
use protocol::provider::ModelInfo;
use std::collections::HashMap;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// Tokens that are read and written together at most, whatever the model could.
const WINDOW: usize = 4096;
/// Tokens of one answer.
const ANSWER: usize = 512;
/// Tokens that are read at once: more would take memory, fewer time.
const CHUNK: usize = 128;
/// Models that stay loaded, the last used ones.
const LOADED: usize = 2;
/// Conversations of each model that stay read.
const SLOTS: usize = 2;

/// Set when nobody waits for an answer any more.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn check(&self) -> Result<(), Stop> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Stop::Cancelled),
            false => Ok(()),
        }
    }
}

/// All of this process.
#[derive(Default)]
pub struct Engines {
    instances: HashMap<String, Choice>,
    count: u64,
    /// The last used one comes last.
    loaded: Vec<(Stamp, Engine)>,
}

/// A file as it was when it was loaded.
#[derive(Clone, Debug, PartialEq)]
struct Stamp {
    choice: Choice,
    size: u64,
    changed: Option<SystemTime>,
}

/// A model with its tokenizer and template.
struct Engine {
    model: Model,
    tokenizer: Tokenizer,
    template: Template,
    slots: Vec<Slot>,
    size: u64,
    /// Distinguishes one answer from the next.
    seed: u64,
}

/// What a model has read, and its tokens.
struct Slot {
    tokens: Vec<u32>,
    cache: Cache,
}

impl Choice {
    fn path(&self) -> &Path {
        match self {
            Self::Gguf(path) | Self::Any(path) => path,
            Self::Llama2 { model, .. } => model,
        }
    }

    /// What people call it.
    fn name(&self) -> String {
        let stem = self.path().file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }
}

impl Engines {
    pub fn build(&mut self, params: &BuildParams) -> Result<BuildResult, Failure> {
        let provider = PROVIDERS
            .iter()
            .find(|provider| provider.name == params.name);
        let provider = provider.ok_or_else(|| {
            Failure::new(format!("dwell-local has no provider {:?}", params.name))
        })?;
        let model = params.model.as_deref().filter(|model| !model.is_empty());
        let choice = (provider.choose)(model, &Variables(&params.env))?;
        let window = self.engine(&choice)?.window();
        self.count += 1;
        let instance = format!("{}-{}", params.name, self.count);
        let result = BuildResult {
            instance: instance.clone(),
            model: Some(choice.name()),
            window: Some(window as u64),
        };
        self.instances.insert(instance, choice);
        Ok(result)
    }

    pub fn models(&mut self, instance: &str) -> Result<Vec<ModelInfo>, Failure> {
        let choice = self.choice(instance)?;
        let engine = self.engine(&choice)?;
        Ok(vec![ModelInfo {
            name: choice.name(),
            window: Some(engine.window() as u64),
            size: Some(engine.size),
        }])
    }

    pub fn release(&mut self, instance: &str) {
        self.instances.remove(instance);
    }

    pub fn fetch(
        &mut self,
        params: &FetchParams,
        cancel: &Cancel,
        emit: &mut dyn FnMut(ProviderNotification),
    ) -> Result<(), Failure> {
        let choice = self.choice(&params.instance)?;
        let engine = self.engine(&choice)?;
        // Whatever a file made the arithmetic do: it is this answer's failure and no other's.
        let answer = AssertUnwindSafe(|| engine.answer(params, cancel, emit));
        match catch_unwind(answer) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Stop::Cancelled)) => Err(Failure::new("cancelled")),
            Ok(Err(Stop::Failed(why))) => Err(Failure::new(why)),
            Err(_) => {
                self.loaded.retain(|(stamp, _)| stamp.choice != choice);
                Err(Failure::new(format!(
                    "{} cannot be computed: the file is damaged",
                    choice.name()
                )))
            }
        }
    }

    fn choice(&self, instance: &str) -> Result<Choice, Failure> {
        let choice = self.instances.get(instance).cloned();
        choice.ok_or_else(|| Failure::new(format!("dwell-local has no instance {instance:?}")))
    }

    /// The loaded model, as its file is now.
    fn engine(&mut self, choice: &Choice) -> Result<&mut Engine, Failure> {
        let stamp = Stamp::of(choice)?;
        match self.loaded.iter().position(|(other, _)| *other == stamp) {
            Some(at) => {
                let last = self.loaded.remove(at);
                self.loaded.push(last);
            }
            None => {
                self.loaded.retain(|(other, _)| other.choice != *choice);
                if self.loaded.len() == LOADED {
                    self.loaded.remove(0);
                }
                let engine = Engine::load(choice, stamp.size)?;
                self.loaded.push((stamp, engine));
            }
        }
        let last = self.loaded.last_mut().map(|(_, engine)| engine);
        last.ok_or_else(|| Failure::new("no model is loaded"))
    }
}

impl Stamp {
    fn of(choice: &Choice) -> Result<Self, Failure> {
        let path = choice.path();
        let meta = path.metadata();
        let meta = meta.map_err(|error| {
            Failure::new(format!("cannot read the model {}: {error}", path.display()))
        })?;
        if !meta.is_file() {
            return Err(Failure::new(format!(
                "the model {} is no file",
                path.display()
            )));
        }
        Ok(Self {
            choice: choice.clone(),
            size: meta.len(),
            changed: meta.modified().ok(),
        })
    }
}

impl Engine {
    fn load(choice: &Choice, size: u64) -> Result<Self, Failure> {
        let loaded = catch_unwind(|| match choice {
            Choice::Gguf(path) => of_gguf(path),
            Choice::Any(path) => of_any(path),
            Choice::Llama2 { model, tokenizer } => of_llama2(model, tokenizer),
        });
        let loaded = loaded.unwrap_or_else(|_| Err("the file is damaged".to_owned()));
        let (model, tokenizer, template) = loaded.map_err(|why| {
            Failure::new(format!(
                "cannot load the model {}: {why}",
                choice.path().display()
            ))
        })?;
        Ok(Self {
            model,
            tokenizer,
            template,
            slots: Vec::new(),
            size,
            seed: 0x9e37_79b9_7f4a_7c15,
        })
    }

    fn window(&self) -> usize {
        self.model.shape.context.min(WINDOW)
    }

    fn answer(
        &mut self,
        params: &FetchParams,
        cancel: &Cancel,
        emit: &mut dyn FnMut(ProviderNotification),
    ) -> Result<(), Stop> {
        cancel.check()?;
        let prompt = chat::prompt(
            &params.messages,
            &params.tools,
            &self.template,
            &self.tokenizer,
        );
        let tokens = self
            .tokenizer
            .encode(&prompt.map_err(Stop::Failed)?)
            .map_err(Stop::Failed)?;
        self.check_length(&tokens)?;
        let (slot, cached) = self.slot(&tokens);
        let mut logits = self.prefill(slot, &tokens, cancel)?;
        let names = params
            .tools
            .iter()
            .filter_map(|tool| tool["function"]["name"].as_str());
        let tools = if self.template.knows_tools {
            names.map(str::to_owned).collect()
        } else {
            Vec::new()
        };
        let mut calls = Calls::new(tools);
        let mut bytes = Vec::new();
        let mut said = Vec::new();
        let most = ANSWER.min(self.window() - tokens.len());
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let mut sampler = Sampler::new(Taste::default(), self.seed);
        while said.len() < most {
            let id = sampler.next(&mut logits, &said);
            said.push(id);
            if self.tokenizer.ends(id) {
                break;
            }
            bytes.extend_from_slice(self.tokenizer.piece(id));
            calls.push(&whole_letters(&mut bytes), emit);
            if said.len() == most {
                break;
            }
            let slot = &mut self.slots[slot];
            logits = self.model.read(&[id], &mut slot.cache, cancel)?;
            slot.tokens.push(id);
        }
        calls.push(&String::from_utf8_lossy(&bytes), emit);
        calls.finish(emit);
        emit(ProviderNotification::Usage {
            input: tokens.len() as u64,
            output: said.len() as u64,
            cached: cached as u64,
        });
        Ok(())
    }

    fn check_length(&self, tokens: &[u32]) -> Result<(), Stop> {
        let (count, window) = (tokens.len(), self.window());
        if count == 0 {
            return Err(Stop::Failed(
                "there is nothing to go on with: the prompt is empty".to_owned(),
            ));
        }
        if count + 1 > window {
            return Err(Stop::Failed(format!(
                "the conversation has {count} tokens, and this local model reads {window}: /compact or /clear makes it shorter, /provider goes on with a model that reads more"
            )));
        }
        Ok(())
    }

    /// The slot that has read most of these tokens already, cut to what they share, and how many that are.
    fn slot(&mut self, tokens: &[u32]) -> (usize, usize) {
        // The last token is always read: what follows it is wanted.
        let most = tokens.len() - 1;
        let shared = |slot: &Slot| {
            let pairs = slot.tokens.iter().zip(&tokens[..most]);
            pairs.take_while(|(a, b)| a == b).count()
        };
        let best = self
            .slots
            .iter()
            .map(shared)
            .enumerate()
            .max_by_key(|(_, shared)| *shared);
        let (index, shared) = match best {
            Some((index, shared)) if shared * 2 >= self.slots[index].tokens.len() => {
                (index, shared)
            }
            // Little in common is another conversation. What it does share, such as the tools, is copied.
            other => {
                let (slot, shared) = match other {
                    Some((index, shared)) => (self.slots[index].copy(shared), shared),
                    None => (Slot::new(&self.model), 0),
                };
                if self.slots.len() == SLOTS {
                    self.slots.remove(0);
                }
                self.slots.push(slot);
                (self.slots.len() - 1, shared)
            }
        };
        let mut slot = self.slots.remove(index);
        slot.tokens.truncate(shared);
        slot.cache.cut(shared);
        // All conversations together take no more memory than one that is as long as can be.
        let mut room = self.window().saturating_sub(tokens.len() + ANSWER);
        self.slots.retain(|other| {
            let fits = other.tokens.len() <= room;
            room -= if fits { other.tokens.len() } else { 0 };
            fits
        });
        self.slots.push(slot);
        (self.slots.len() - 1, shared)
    }

    fn prefill(&mut self, slot: usize, tokens: &[u32], cancel: &Cancel) -> Result<Vec<f32>, Stop> {
        let slot = &mut self.slots[slot];
        let mut logits = Vec::new();
        for chunk in tokens[slot.tokens.len()..].chunks(CHUNK) {
            logits = self.model.read(chunk, &mut slot.cache, cancel)?;
            slot.tokens.extend_from_slice(chunk);
        }
        Ok(logits)
    }
}

impl Slot {
    fn new(model: &Model) -> Self {
        Self {
            tokens: Vec::new(),
            cache: Cache::new(&model.shape),
        }
    }

    /// Another with the first tokens of this one.
    fn copy(&self, count: usize) -> Self {
        Self {
            tokens: self.tokens[..count].to_vec(),
            cache: self.cache.copy(count),
        }
    }
}

type Loaded = (Model, Tokenizer, Template);

fn of_gguf(path: &Path) -> Result<Loaded, String> {
    let mut file = Gguf::open(path)?;
    let model = file.model()?;
    let tokenizer = Tokenizer::of_gguf(&file)?;
    let source = match file.text("tokenizer.chat_template") {
        Some(text) => Source::File(text),
        None if tokenizer.has("<|im_start|>") => Source::ChatMl,
        None => Source::Talk,
    };
    let template = Template::new(&source)?;
    Ok((model, tokenizer, template))
}

fn of_any(path: &Path) -> Result<Loaded, String> {
    let mut magic = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.map_err(|error| format!("cannot read its first bytes: {error}"))?;
    if magic == *b"GGUF" {
        return of_gguf(path);
    }
    if !legacy::is_legacy(magic) {
        return Err("it is neither GGUF nor of a format before it (ggml, ggmf, ggjt)".to_owned());
    }
    let (model, vocabulary) = legacy::model(path)?;
    Ok((
        model,
        Tokenizer::of_legacy(vocabulary),
        Template::new(&Source::Talk)?,
    ))
}

fn of_llama2(path: &Path, tokenizer: &Path) -> Result<Loaded, String> {
    let model = checkpoint::model(path)?;
    let words = Tokenizer::of_llama2(tokenizer, model.shape.words);
    let words =
        words.map_err(|why| format!("cannot read its tokenizer {}: {why}", tokenizer.display()))?;
    Ok((model, words, Template::new(&Source::Text)?))
}

/// Takes what is whole UTF-8 off the front; bytes that can never be are shown as what they are not.
fn whole_letters(bytes: &mut Vec<u8>) -> String {
    let whole = match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(error) if error.error_len().is_some() => bytes.len(),
        Err(error) => error.valid_up_to(),
    };
    let rest = bytes.split_off(whole);
    let taken = std::mem::replace(bytes, rest);
    String::from_utf8_lossy(&taken).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_told_whole() {
        let mut bytes = vec![b'a', 0xe2, 0x82];
        assert_eq!(whole_letters(&mut bytes), "a");
        bytes.push(0xac);
        assert_eq!(whole_letters(&mut bytes), "\u{20ac}");
        bytes.extend([0xff, b'b']);
        assert_eq!(whole_letters(&mut bytes), "\u{fffd}b");
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let env = [("CANDLE_MODEL".to_owned(), "/no/such/file.gguf".to_owned())];
        let params = BuildParams {
            name: "candle".to_owned(),
            env: env.into(),
            ..BuildParams::default()
        };
        let failure = Engines::default().build(&params).expect_err("no file");
        assert!(
            failure.message.contains("/no/such/file.gguf"),
            "{}",
            failure.message
        );
    }
}
