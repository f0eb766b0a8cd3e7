//! Loading the formats before GGUF: `ggml`, `ggmf` and `ggjt`. Must never trust a header.

use super::matrix::{Matrix, quickened, values};
use super::{Layer, Model, Pairs, Projection, Rope, Shape};
use candle_core::Device;
use candle_core::quantized::ggml_file::qtensor_from_ggml;
use candle_core::quantized::{GgmlDType, QTensor};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The first four bytes, as a number.
const GGML: u32 = 0x6767_6d6c;
const GGMF: u32 = 0x6767_6d66;
const GGJT: u32 = 0x6767_6a74;

/// What a vocabulary of that time holds: bytes and a score for each token.
pub type Vocabulary = Vec<(Vec<u8>, f32)>;

struct Legacy {
    file: BufReader<File>,
    length: u64,
    magic: u32,
    version: u32,
}

/// Whether a file begins as one of these does.
pub fn is_legacy(magic: [u8; 4]) -> bool {
    matches!(u32::from_le_bytes(magic), GGML | GGMF | GGJT)
}

pub fn model(path: &Path) -> Result<(Model, Vocabulary), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let mut legacy = Legacy {
        file: BufReader::new(file),
        length,
        magic: 0,
        version: 0,
    };
    legacy.magic = legacy.number()? as u32;
    if legacy.magic != GGML {
        legacy.version = legacy.number()? as u32;
    }
    if !matches!(
        (legacy.magic, legacy.version),
        (GGML, 0) | (GGMF, 1) | (GGJT, 1..=3)
    ) {
        return Err(format!(
            "its format has the version {}, which is not known",
            legacy.version
        ));
    }
    let mut numbers = [0; 7];
    for number in &mut numbers {
        *number = legacy.number()?;
    }
    let [words, dim, _, heads, layers, turned, _] = numbers;
    let vocabulary = legacy.vocabulary(words)?;
    let tensors = legacy.tensors()?;
    let head = dim.checked_div(heads).unwrap_or(0);
    let inner = tensors.get("layers.0.feed_forward.w1.weight");
    let inner = inner.and_then(|tensor| tensor.shape().dims().first().copied());
    let shape = Shape {
        dim,
        heads,
        kv_heads: heads,
        head,
        layers,
        words,
        inner: inner.ok_or("it has no tensor layers.0.feed_forward.w1.weight")?,
        // The header does not say; those models were made for no less.
        context: 2048,
        epsilon: 1e-6,
        rope: Rope::new(
            Pairs::Adjacent,
            turned.min(head).min(1 << 12),
            10_000.0,
            1.0,
            None,
        ),
    };
    shape.check()?;
    Ok((assemble(shape, Tensors(tensors))?, vocabulary))
}

impl Legacy {
    /// Bytes, if the file still has so many.
    fn take(&mut self, count: usize) -> Result<Vec<u8>, String> {
        let here = self.position()?;
        if count as u64 > self.length.saturating_sub(here) {
            return Err("it is cut short, or its header is damaged".to_owned());
        }
        let mut bytes = vec![0; count];
        let read = self.file.read_exact(&mut bytes);
        read.map_err(|error| error.to_string()).map(|()| bytes)
    }

    fn position(&mut self) -> Result<u64, String> {
        self.file
            .stream_position()
            .map_err(|error| error.to_string())
    }

    fn number(&mut self) -> Result<usize, String> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
    }

    fn vocabulary(&mut self, words: usize) -> Result<Vocabulary, String> {
        let mut all = Vec::new();
        for id in 0..words {
            let length = self.number()?;
            let bytes = self.take(length)?;
            let score = match self.magic {
                GGML => -(id as f32),
                _ => f32::from_bits(self.number()? as u32),
            };
            all.push((bytes, score));
        }
        Ok(all)
    }

    fn tensors(&mut self) -> Result<HashMap<String, QTensor>, String> {
        let mut all = HashMap::new();
        while self.position()? < self.length {
            let (name, tensor) = self.tensor()?;
            all.insert(name, tensor);
        }
        Ok(all)
    }

    fn tensor(&mut self) -> Result<(String, QTensor), String> {
        let (count, length, kind) = (self.number()?, self.number()?, self.number()?);
        if count == 0 || count > 2 || length > 256 {
            return Err("the table of its tensors is damaged".to_owned());
        }
        let mut dims = (0..count)
            .map(|_| self.number())
            .collect::<Result<Vec<_>, _>>()?;
        dims.reverse();
        let name = String::from_utf8_lossy(&self.take(length)?).into_owned();
        if self.magic == GGJT {
            let here = self.position()?;
            let start = SeekFrom::Start(here.next_multiple_of(32));
            self.file.seek(start).map_err(|error| error.to_string())?;
        }
        let kind =
            kind_of(kind).ok_or_else(|| format!("its tensor {name} is of an unknown kind"))?;
        let floats = matches!(kind, GgmlDType::F32 | GgmlDType::F16);
        if !floats && (self.magic, self.version) != (GGJT, 3) {
            return Err(
                "its numbers are packed in an older way than ggjt version 3; convert it to GGUF"
                    .to_owned(),
            );
        }
        let values = dims
            .iter()
            .try_fold(1_usize, |all, size| all.checked_mul(*size));
        let fits = values.filter(|values| values.is_multiple_of(kind.block_size()));
        let bytes =
            fits.and_then(|values| (values / kind.block_size()).checked_mul(kind.type_size()));
        let bytes = bytes.ok_or_else(|| format!("its tensor {name} has no possible size"))?;
        let data = self.take(bytes)?;
        let tensor = qtensor_from_ggml(kind, &data, dims, &Device::Cpu);
        let tensor = tensor.map_err(|error| format!("its tensor {name}: {error}"))?;
        Ok((name, tensor))
    }
}

fn kind_of(number: usize) -> Option<GgmlDType> {
    Some(match number {
        0 => GgmlDType::F32,
        1 => GgmlDType::F16,
        2 => GgmlDType::Q4_0,
        3 => GgmlDType::Q4_1,
        6 => GgmlDType::Q5_0,
        7 => GgmlDType::Q5_1,
        8 => GgmlDType::Q8_0,
        10 => GgmlDType::Q2K,
        11 => GgmlDType::Q3K,
        12 => GgmlDType::Q4K,
        13 => GgmlDType::Q5K,
        14 => GgmlDType::Q6K,
        _ => return None,
    })
}

struct Tensors(HashMap<String, QTensor>);

impl Tensors {
    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Matrix, String> {
        let tensor = self.take(name)?;
        Matrix::new(quickened(tensor)?, name, rows, columns)
    }

    fn vector(&mut self, name: &str, len: usize) -> Result<Vec<f32>, String> {
        let values = values(&self.take(name)?)?;
        match values.len() == len {
            true => Ok(values),
            false => Err(format!(
                "its tensor {name} has {} values and not {len}",
                values.len()
            )),
        }
    }

    fn take(&mut self, name: &str) -> Result<QTensor, String> {
        let tensor = self.0.remove(&format!("{name}.weight"));
        tensor.ok_or_else(|| format!("it has no tensor {name}.weight"))
    }
}

fn assemble(shape: Shape, mut tensors: Tensors) -> Result<Model, String> {
    let (dim, inner) = (shape.dim, shape.inner);
    let mut layers = Vec::new();
    for index in 0..shape.layers {
        let name = |part: &str| format!("layers.{index}.{part}");
        let mut square = |part: &str| tensors.matrix(&name(part), dim, dim);
        let (query, key) = (square("attention.wq")?, square("attention.wk")?);
        let (value, attention_output) = (square("attention.wv")?, square("attention.wo")?);
        layers.push(Layer {
            attention_norm: tensors.vector(&name("attention_norm"), dim)?,
            query: Projection::plain(query),
            key: Projection::plain(key),
            value: Projection::plain(value),
            attention_output,
            inner_norm: tensors.vector(&name("ffn_norm"), dim)?,
            gate: tensors.matrix(&name("feed_forward.w1"), inner, dim)?,
            up: tensors.matrix(&name("feed_forward.w3"), inner, dim)?,
            down: tensors.matrix(&name("feed_forward.w2"), dim, inner)?,
        });
    }
    Ok(Model {
        embeddings: tensors.matrix("tok_embeddings", shape.words, dim)?,
        norm: tensors.vector("norm", dim)?,
        output: Some(tensors.matrix("output", shape.words, dim)?),
        layers,
        shape,
    })
}
