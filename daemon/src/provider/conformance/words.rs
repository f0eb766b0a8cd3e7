//! A story in each vendor's words: the events that its interface would stream for it.

use super::super::settings::Api;
use serde_json::{Value, json};

/// A step of a story.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Think(&'a str),
    Say(&'a str),
    /// A call begins: its id and its tool.
    Call(&'a str, &'a str),
    /// A piece of the arguments of the call of that number.
    Piece(usize, &'a str),
    /// Tokens will be told: 7 in, 3 of them cached, and 5 out.
    Usage,
    /// The end, with its mark.
    Stop(Stop),
    /// What is said and of which type.
    Error(&'a str, &'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    End,
    Calls,
    Length,
}

/// The events, each with its own end.
pub(super) fn stream(api: Api, steps: &[Step<'_>]) -> Vec<String> {
    let has_usage = steps.iter().any(|step| matches!(step, Step::Usage));
    let mut story = Story {
        calls: Vec::new(),
        open_text: None,
        blocks: 0,
        has_usage,
        out: Vec::new(),
    };
    match api {
        Api::Chat => steps.iter().for_each(|step| story.chat(*step)),
        Api::Messages => story.messages(steps),
        Api::Responses => story.responses(steps),
        Api::Ollama => steps.iter().for_each(|step| story.ollama(*step)),
    }
    story.out
}

struct Story {
    /// Id, name, arguments so far, and the index of its block.
    calls: Vec<(String, String, String, usize)>,
    open_text: Option<(usize, &'static str)>,
    blocks: usize,
    has_usage: bool,
    out: Vec<String>,
}

impl Story {
    fn data(&mut self, value: &Value) {
        self.out.push(format!("data: {value}\n\n"));
    }

    fn event(&mut self, value: &Value) {
        let name = value["type"].as_str().unwrap();
        self.out.push(format!("event: {name}\ndata: {value}\n\n"));
    }

    fn chat(&mut self, step: Step<'_>) {
        let delta = |delta: Value| {
            json!({"id": "x", "object": "chat.completion.chunk", "choices": [
            {"index": 0, "delta": delta, "finish_reason": null}]})
        };
        match step {
            Step::Think(text) => self.data(&delta(json!({"reasoning_content": text}))),
            Step::Say(text) => self.data(&delta(json!({"content": text}))),
            Step::Call(id, name) => {
                let n = self.calls.len();
                self.calls.push((id.into(), name.into(), String::new(), n));
                self.data(&delta(
                    json!({"tool_calls": [{"index": n, "id": id, "type": "function",
                    "function": {"name": name, "arguments": ""}}]}),
                ));
            }
            Step::Piece(n, text) => self.data(&delta(
                json!({"tool_calls": [{"index": n, "function": {"arguments": text}}]}),
            )),
            Step::Usage => {}
            Step::Stop(stop) => {
                let reason = match stop {
                    Stop::End => "stop",
                    Stop::Calls => "tool_calls",
                    Stop::Length => "length",
                };
                self.data(
                    &json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
                );
                if self.has_usage {
                    self.data(&json!({"choices": [], "usage": {"prompt_tokens": 7,
                        "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}}}));
                }
                self.out.push("data: [DONE]\n\n".to_owned());
            }
            Step::Error(message, kind) => {
                self.data(&json!({"error": {"message": message, "type": kind}}));
            }
        }
    }

    fn messages(&mut self, steps: &[Step<'_>]) {
        let usage = match self.has_usage {
            true => json!({"input_tokens": 4, "cache_read_input_tokens": 3,
                "cache_creation_input_tokens": 0, "output_tokens": 1}),
            false => Value::Null,
        };
        self.event(
            &json!({"type": "message_start", "message": {"id": "msg_1", "type": "message",
            "role": "assistant", "content": [], "stop_reason": null, "usage": usage}}),
        );
        self.event(&json!({"type": "ping"}));
        for step in steps {
            self.message(*step);
        }
    }

    fn message(&mut self, step: Step<'_>) {
        match step {
            Step::Think(text) => {
                let index = self.text_block(
                    "thinking",
                    json!({"type": "thinking", "thinking": "", "signature": ""}),
                );
                self.event(&json!({"type": "content_block_delta", "index": index,
                    "delta": {"type": "thinking_delta", "thinking": text}}));
            }
            Step::Say(text) => {
                let index = self.text_block("text", json!({"type": "text", "text": ""}));
                self.event(&json!({"type": "content_block_delta", "index": index,
                    "delta": {"type": "text_delta", "text": text}}));
            }
            Step::Call(id, name) => {
                self.close_text();
                let index = self.blocks;
                self.blocks += 1;
                self.calls
                    .push((id.into(), name.into(), String::new(), index));
                self.event(&json!({"type": "content_block_start", "index": index,
                    "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}}));
            }
            Step::Piece(n, text) => {
                let index = self.calls[n].3;
                self.event(&json!({"type": "content_block_delta", "index": index,
                    "delta": {"type": "input_json_delta", "partial_json": text}}));
            }
            Step::Usage => {}
            Step::Stop(stop) => {
                self.close_text();
                for index in self.calls.iter().map(|call| call.3).collect::<Vec<_>>() {
                    self.event(&json!({"type": "content_block_stop", "index": index}));
                }
                let reason = match stop {
                    Stop::End => "end_turn",
                    Stop::Calls => "tool_use",
                    Stop::Length => "max_tokens",
                };
                let usage = match self.has_usage {
                    true => json!({"output_tokens": 5}),
                    false => Value::Null,
                };
                self.event(&json!({"type": "message_delta", "usage": usage,
                    "delta": {"stop_reason": reason, "stop_sequence": null}}));
                self.event(&json!({"type": "message_stop"}));
            }
            Step::Error(message, kind) => {
                self.event(&json!({"type": "error", "error": {"type": kind, "message": message}}));
            }
        }
    }

    fn text_block(&mut self, kind: &'static str, block: Value) -> usize {
        if let Some((index, _)) = self.open_text.filter(|(_, open)| *open == kind) {
            return index;
        }
        self.close_text();
        let index = self.blocks;
        self.blocks += 1;
        self.open_text = Some((index, kind));
        self.event(&json!({"type": "content_block_start", "index": index, "content_block": block}));
        index
    }

    fn close_text(&mut self) {
        if let Some((index, kind)) = self.open_text.take() {
            if kind == "thinking" {
                self.event(&json!({"type": "content_block_delta", "index": index,
                    "delta": {"type": "signature_delta", "signature": "c2ln"}}));
            }
            self.event(&json!({"type": "content_block_stop", "index": index}));
        }
    }

    fn responses(&mut self, steps: &[Step<'_>]) {
        self.event(&json!({"type": "response.created", "sequence_number": 0,
            "response": {"id": "resp_1", "status": "in_progress", "output": [], "error": null}}));
        for step in steps {
            self.response(*step);
        }
    }

    fn response(&mut self, step: Step<'_>) {
        match step {
            Step::Think(text) => self
                .event(&json!({"type": "response.reasoning_summary_text.delta",
                "item_id": "rs_1", "output_index": 0, "summary_index": 0, "delta": text})),
            Step::Say(text) => self.event(&json!({"type": "response.output_text.delta",
                "item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": text})),
            Step::Call(id, name) => {
                let n = self.calls.len();
                self.calls.push((id.into(), name.into(), String::new(), n));
                self.event(
                    &json!({"type": "response.output_item.added", "output_index": n + 2,
                    "item": {"type": "function_call", "id": "fc_1", "call_id": id, "name": name,
                    "arguments": "", "status": "in_progress"}}),
                );
            }
            Step::Piece(n, text) => {
                self.calls[n].2.push_str(text);
                self.event(&json!({"type": "response.function_call_arguments.delta",
                    "item_id": "fc_1", "output_index": n + 2, "delta": text}));
            }
            Step::Usage => {}
            Step::Stop(stop) => {
                let is_cut = stop == Stop::Length;
                let status = if is_cut { "incomplete" } else { "completed" };
                for (id, name, arguments, n) in self.calls.clone() {
                    self.event(
                        &json!({"type": "response.output_item.done", "output_index": n + 2,
                        "item": {"type": "function_call", "id": "fc_1", "call_id": id, "name": name,
                        "arguments": arguments, "status": status}}),
                    );
                }
                let usage = match self.has_usage {
                    true => json!({"input_tokens": 7, "output_tokens": 5,
                        "input_tokens_details": {"cached_tokens": 3}}),
                    false => Value::Null,
                };
                let details = match is_cut {
                    true => json!({"reason": "max_output_tokens"}),
                    false => Value::Null,
                };
                self.event(&json!({"type": format!("response.{status}"), "response": {
                    "id": "resp_1", "status": status, "error": null, "usage": usage,
                    "incomplete_details": details}}));
            }
            Step::Error(message, kind) => {
                self.event(
                    &json!({"type": "response.failed", "response": {"id": "resp_1",
                    "status": "failed", "error": {"code": kind, "message": message}}}),
                );
            }
        }
    }

    fn ollama(&mut self, step: Step<'_>) {
        let line = |message: Value| {
            format!(
                "{}\n",
                json!({"model": "m", "created_at": "2026-11-01T00:00:00Z",
                "message": message, "done": false})
            )
        };
        match step {
            Step::Think(text) => self.out.push(line(
                json!({"role": "assistant", "content": "", "thinking": text}),
            )),
            Step::Say(text) => self
                .out
                .push(line(json!({"role": "assistant", "content": text}))),
            Step::Call(id, name) => {
                self.calls.push((id.into(), name.into(), String::new(), 0));
            }
            Step::Piece(n, text) => self.calls[n].2.push_str(text),
            Step::Usage => {}
            Step::Stop(stop) => {
                // It writes whole calls only: one that was cut never comes.
                for (id, name, arguments, _) in std::mem::take(&mut self.calls) {
                    let text = if arguments.is_empty() {
                        "{}"
                    } else {
                        &arguments
                    };
                    if let Ok(arguments) = serde_json::from_str::<Value>(text) {
                        self.out.push(line(
                            json!({"role": "assistant", "content": "", "tool_calls": [
                            {"id": id, "function": {"name": name, "arguments": arguments}}]}),
                        ));
                    }
                }
                let reason = if stop == Stop::Length {
                    "length"
                } else {
                    "stop"
                };
                let mut end = json!({"model": "m", "message": {"role": "assistant", "content": ""},
                    "done": true, "done_reason": reason});
                if self.has_usage {
                    end["prompt_eval_count"] = 7.into();
                    end["eval_count"] = 5.into();
                }
                self.out.push(format!("{end}\n"));
            }
            Step::Error(message, _) => self.out.push(format!("{}\n", json!({"error": message}))),
        }
    }
}
