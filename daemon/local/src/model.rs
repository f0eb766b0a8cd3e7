//! The transformer of the llama family over a cache that can be cut back. Must never know files, tokens' texts or prompts.

mod attention;
pub mod checkpoint;
pub mod gguf;
pub mod legacy;
mod matrix;
mod rope;

pub use attention::Cache;
pub use matrix::{Matrix, quickened};
pub use rope::{Pairs, Rope};

use crate::engine::Cancel;
use attention::attend;

/// Sizes.
#[derive(Clone, Debug)]
pub struct Shape {
    pub dim: usize,
    pub inner: usize,
    pub heads: usize,
    pub kv_heads: usize,
    /// Values of a head.
    pub head: usize,
    pub layers: usize,
    pub words: usize,
    /// Tokens that the model was made for.
    pub context: usize,
    pub epsilon: f32,
    pub rope: Rope,
}

/// A loaded model.
pub struct Model {
    pub shape: Shape,
    pub embeddings: Matrix,
    pub layers: Vec<Layer>,
    pub norm: Vec<f32>,
    /// None: the embeddings.
    pub output: Option<Matrix>,
}

pub struct Layer {
    pub attention_norm: Vec<f32>,
    pub query: Projection,
    pub key: Projection,
    pub value: Projection,
    pub attention_output: Matrix,
    pub inner_norm: Vec<f32>,
    pub gate: Matrix,
    pub up: Matrix,
    pub down: Matrix,
}

pub struct Projection {
    pub matrix: Matrix,
    pub bias: Option<Vec<f32>>,
    /// Of each head apart.
    pub norm: Option<Vec<f32>>,
}

impl Projection {
    pub fn plain(matrix: Matrix) -> Self {
        Self {
            matrix,
            bias: None,
            norm: None,
        }
    }
}

/// Why no values came out.
#[derive(Debug)]
pub enum Stop {
    Cancelled,
    Failed(String),
}

impl Shape {
    /// Refuses sizes that would be divided by or allocated for without end.
    pub fn check(&self) -> Result<(), String> {
        let sizes = [
            ("width", self.dim, 1 << 17),
            ("inner width", self.inner, 1 << 20),
            ("heads", self.heads, 1 << 12),
            ("key heads", self.kv_heads, 1 << 12),
            ("width of a head", self.head, 1 << 12),
            ("layers", self.layers, 1 << 10),
            ("vocabulary", self.words, 1 << 22),
            ("context", self.context, 1 << 28),
        ];
        for (what, size, most) in sizes {
            if size == 0 || size > most {
                return Err(format!("its {what} is {size}, which cannot be"));
            }
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(format!(
                "its {} heads are no multiple of its {} key heads",
                self.heads, self.kv_heads
            ));
        }
        if !self.head.is_multiple_of(2) || self.rope.dims > self.head {
            return Err("its heads and their rotation do not fit together".to_owned());
        }
        Ok(())
    }
}

impl Model {
    /// Reads tokens behind those of the cache; gives the values for the token after the last. A cancelled or failed
    /// call leaves the cache as it was.
    pub fn read(
        &self,
        tokens: &[u32],
        cache: &mut Cache,
        cancel: &Cancel,
    ) -> Result<Vec<f32>, Stop> {
        let start = cache.len();
        let mut stream = self.embeddings.rows(tokens)?;
        cache.cut(start);
        for (index, layer) in self.layers.iter().enumerate() {
            let done = self.layer(layer, index, start, &mut stream, cache, cancel);
            if let Err(stop) = done {
                cache.cut(start);
                return Err(stop);
            }
        }
        cache.grow(tokens.len());
        let dim = self.shape.dim;
        let last = &stream[stream.len() - dim..];
        let last = normed(last, &self.norm, self.shape.epsilon);
        self.output
            .as_ref()
            .unwrap_or(&self.embeddings)
            .times(&last)
    }

    fn layer(
        &self,
        layer: &Layer,
        index: usize,
        start: usize,
        stream: &mut [f32],
        cache: &mut Cache,
        cancel: &Cancel,
    ) -> Result<(), Stop> {
        let x = normed(stream, &layer.attention_norm, self.shape.epsilon);
        let times = |matrix: &Matrix, x: &[f32]| {
            cancel.check()?;
            matrix.times(x)
        };
        let project = |projection: &Projection| {
            let values = times(&projection.matrix, &x)?;
            Ok::<_, Stop>(self.finished(projection, values))
        };
        let (mut query, mut key) = (project(&layer.query)?, project(&layer.key)?);
        let value = project(&layer.value)?;
        self.shape
            .rope
            .turn(&mut query, self.shape.heads, self.shape.head, start);
        self.shape
            .rope
            .turn(&mut key, self.shape.kv_heads, self.shape.head, start);
        cache.put(index, &key, &value);
        cancel.check()?;
        let seen = attend(&self.shape, cache.layer(index), &query, start);
        add(stream, &times(&layer.attention_output, &seen)?);

        let x = normed(stream, &layer.inner_norm, self.shape.epsilon);
        let mut gate = times(&layer.gate, &x)?;
        let up = times(&layer.up, &x)?;
        for (gate, up) in gate.iter_mut().zip(&up) {
            *gate = *gate / (1.0 + attention::exp(-*gate)) * up;
        }
        add(stream, &times(&layer.down, &gate)?);
        Ok(())
    }

    fn finished(&self, projection: &Projection, mut values: Vec<f32>) -> Vec<f32> {
        if let Some(bias) = &projection.bias {
            values.chunks_mut(bias.len()).for_each(|row| add(row, bias));
        }
        match &projection.norm {
            Some(norm) => normed(&values, norm, self.shape.epsilon),
            None => values,
        }
    }
}

fn add(to: &mut [f32], values: &[f32]) {
    to.iter_mut()
        .zip(values)
        .for_each(|(to, value)| *to += value);
}

/// Each row by its root mean square.
fn normed(rows: &[f32], weights: &[f32], epsilon: f32) -> Vec<f32> {
    let mut out = Vec::with_capacity(rows.len());
    for row in rows.chunks(weights.len()) {
        let mean = row.iter().map(|value| value * value).sum::<f32>() / row.len() as f32;
        let factor = 1.0 / (mean + epsilon).sqrt();
        out.extend(
            row.iter()
                .zip(weights)
                .map(|(value, weight)| value * factor * weight),
        );
    }
    out
}
