//! Loading GGUF files: the architectures that are known, every size checked against the file. Must never trust a header.

use super::matrix::{Matrix, quickened, values};
use super::{Layer, Model, Pairs, Projection, Rope, Shape};
use candle_core::Device;
use candle_core::quantized::QTensor;
use candle_core::quantized::gguf_file::{Content, Value};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// An opened file: its header, and where its tensors are read from.
pub struct Gguf {
    pub content: Content,
    file: BufReader<File>,
}

/// Architectures, and which values of a head turn together in them.
const ARCHITECTURES: &[(&str, Pairs)] = &[
    ("llama", Pairs::Adjacent),
    ("qwen2", Pairs::Halves),
    ("qwen3", Pairs::Halves),
];

impl Gguf {
    /// Reads the header, and checks that the file holds the tensors that it names.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let length = file.metadata().map_err(|error| error.to_string())?.len();
        let mut file = BufReader::new(file);
        let content =
            Content::read(&mut file).map_err(|error| format!("its header is damaged: {error}"))?;
        for (name, tensor) in &content.tensor_infos {
            let dims = tensor.shape.dims();
            let count = dims
                .iter()
                .try_fold(1_u64, |all, size| all.checked_mul(*size as u64));
            let kind = tensor.ggml_dtype;
            let bytes = count.and_then(|count| {
                count
                    .div_ceil(kind.block_size() as u64)
                    .checked_mul(kind.type_size() as u64)
            });
            let start = content.tensor_data_offset.checked_add(tensor.offset);
            let end = bytes
                .zip(start)
                .and_then(|(bytes, start)| start.checked_add(bytes));
            if end.is_none_or(|end| end > length) {
                return Err(format!(
                    "it is cut short: its tensor {name} lies beyond its end"
                ));
            }
        }
        Ok(Self { content, file })
    }

    /// A tensor in the kind that the file has it.
    pub fn tensor(&mut self, name: &str) -> Result<QTensor, String> {
        let tensor = self.content.tensor(&mut self.file, name, &Device::Cpu);
        tensor.map_err(|error| format!("its tensor {name}: {error}"))
    }

    pub fn number(&self, name: &str) -> Option<usize> {
        let value = self.content.metadata.get(name)?;
        let number = value.to_u64().or_else(|_| value.to_u32().map(u64::from));
        let number = number.or_else(|_| {
            value
                .to_i32()
                .map(|value| u64::try_from(value).unwrap_or(0))
        });
        number.ok().and_then(|number| usize::try_from(number).ok())
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        let value = self.content.metadata.get(name)?;
        value.to_string().ok().map(String::as_str)
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.content.metadata.get(name)?.to_bool().ok()
    }

    pub fn list(&self, name: &str) -> Option<&[Value]> {
        self.content
            .metadata
            .get(name)?
            .to_vec()
            .ok()
            .map(Vec::as_slice)
    }

    fn float(&self, name: &str) -> Option<f32> {
        self.content.metadata.get(name)?.to_f32().ok()
    }

    /// The whole model.
    pub fn model(&mut self) -> Result<Model, String> {
        let architecture = self
            .text("general.architecture")
            .unwrap_or("none")
            .to_owned();
        let known = ARCHITECTURES.iter().find(|(name, _)| *name == architecture);
        let Some((_, pairs)) = known else {
            let names: Vec<_> = ARCHITECTURES.iter().map(|(name, _)| *name).collect();
            return Err(format!(
                "its architecture is {architecture}; those that run here are {}",
                names.join(", ")
            ));
        };
        let shape = self.shape(&architecture, *pairs)?;
        shape.check()?;
        let embeddings = self.matrix("token_embd", shape.words, shape.dim)?;
        let layers = (0..shape.layers).map(|index| self.layer(index, &shape));
        let layers = layers.collect::<Result<_, _>>()?;
        Ok(Model {
            embeddings,
            layers,
            norm: self.vector("output_norm.weight", shape.dim)?,
            output: match self.has("output.weight") {
                true => Some(self.matrix("output", shape.words, shape.dim)?),
                false => None,
            },
            shape,
        })
    }

    fn shape(&mut self, architecture: &str, pairs: Pairs) -> Result<Shape, String> {
        let key = |name: &str| format!("{architecture}.{name}");
        let need = |this: &Self, name: &str| {
            let number = this.number(&key(name));
            number.ok_or_else(|| format!("its header lacks {}", key(name)))
        };
        if self
            .number(&key("expert_count"))
            .is_some_and(|count| count > 0)
        {
            return Err("it is a mixture of experts, which does not run here".to_owned());
        }
        let (dim, heads) = (
            need(self, "embedding_length")?,
            need(self, "attention.head_count")?,
        );
        let head = self.number(&key("attention.key_length"));
        let head = head.unwrap_or_else(|| dim.checked_div(heads).unwrap_or(0));
        let dims = self.number(&key("rope.dimension_count")).unwrap_or(head);
        let slower = match self.has("rope_freqs.weight") && dims <= 1 << 12 {
            true => Some(self.vector("rope_freqs.weight", dims / 2)?),
            false => None,
        };
        let linear = self.text(&key("rope.scaling.type")) == Some("linear");
        let scale = self
            .float(&key("rope.scaling.factor"))
            .filter(|scale| linear && *scale > 0.0);
        let base = self.float(&key("rope.freq_base")).unwrap_or(10_000.0);
        if dims > 1 << 12 {
            return Err(format!("its heads turn {dims} values, which cannot be"));
        }
        Ok(Shape {
            dim,
            heads,
            head,
            kv_heads: self
                .number(&key("attention.head_count_kv"))
                .unwrap_or(heads),
            inner: need(self, "feed_forward_length")?,
            layers: need(self, "block_count")?,
            words: self.list("tokenizer.ggml.tokens").map_or(0, <[_]>::len),
            context: need(self, "context_length")?,
            epsilon: self
                .float(&key("attention.layer_norm_rms_epsilon"))
                .unwrap_or(1e-5),
            rope: Rope::new(pairs, dims, base, scale.unwrap_or(1.0), slower.as_deref()),
        })
    }

    fn layer(&mut self, index: usize, shape: &Shape) -> Result<Layer, String> {
        let (dim, inner) = (shape.dim, shape.inner);
        let (queries, keys) = (shape.heads * shape.head, shape.kv_heads * shape.head);
        let name = |part: &str| format!("blk.{index}.{part}");
        Ok(Layer {
            attention_norm: self.vector(&name("attn_norm.weight"), dim)?,
            query: self.projection(&name("attn_q"), queries, shape)?,
            key: self.projection(&name("attn_k"), keys, shape)?,
            value: self.projection(&name("attn_v"), keys, shape)?,
            attention_output: self.matrix(&name("attn_output"), dim, queries)?,
            inner_norm: self.vector(&name("ffn_norm.weight"), dim)?,
            gate: self.matrix(&name("ffn_gate"), inner, dim)?,
            up: self.matrix(&name("ffn_up"), inner, dim)?,
            down: self.matrix(&name("ffn_down"), dim, inner)?,
        })
    }

    fn projection(&mut self, name: &str, rows: usize, shape: &Shape) -> Result<Projection, String> {
        let matrix = self.matrix(name, rows, shape.dim)?;
        let (bias, norm) = (format!("{name}.bias"), format!("{name}_norm.weight"));
        Ok(Projection {
            matrix,
            bias: self
                .has(&bias)
                .then(|| self.vector(&bias, rows))
                .transpose()?,
            norm: self
                .has(&norm)
                .then(|| self.vector(&norm, shape.head))
                .transpose()?,
        })
    }

    fn has(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Matrix, String> {
        let name = format!("{name}.weight");
        Matrix::new(quickened(self.tensor(&name)?)?, &name, rows, columns)
    }

    fn vector(&mut self, name: &str, len: usize) -> Result<Vec<f32>, String> {
        let values = values(&self.tensor(name)?)?;
        match values.len() == len {
            true => Ok(values),
            false => Err(format!(
                "its tensor {name} has {} values and not {len}",
                values.len()
            )),
        }
    }
}
