//! A copy of a model file whose slow tensors are in a kind that is computed fast. Must never leave half a file under
//! the name that was asked for.

use crate::model::gguf::Gguf;
use crate::model::quickened;
use candle_core::quantized::gguf_file;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

pub fn requantise(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |why: String| format!("cannot requantise {}: {why}", from.display());
    let part = to.with_extension("gguf.new");
    let done = write(from, &part).and_then(|()| {
        std::fs::rename(&part, to)
            .map_err(|error| format!("cannot write {}: {error}", to.display()))
    });
    done.map_err(|why| {
        // Whether it can be removed or not: what counts is why it is there.
        let _ = std::fs::remove_file(&part);
        failed(why)
    })
}

fn write(from: &Path, to: &Path) -> Result<(), String> {
    let mut file = Gguf::open(from)?;
    let mut names: Vec<String> = file.content.tensor_infos.keys().cloned().collect();
    names.sort();
    let mut tensors = Vec::new();
    for name in names {
        tensors.push((name.clone(), quickened(file.tensor(&name)?)?));
    }
    let tensors: Vec<_> = tensors
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor))
        .collect();
    let metadata: Vec<_> = file
        .content
        .metadata
        .iter()
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    let out = File::create(to).map_err(|error| error.to_string())?;
    let mut out = BufWriter::new(out);
    gguf_file::write(&mut out, &metadata, &tensors).map_err(|error| error.to_string())?;
    out.flush().map_err(|error| error.to_string())?;
    let file = out.into_inner().map_err(|error| error.to_string())?;
    file.sync_all().map_err(|error| error.to_string())
}
