//! Loading checkpoints of llama2.c: the first layout, and `ak42` in floats or eight-bit groups. Must never trust a header.

use super::matrix::Matrix;
use super::{Layer, Model, Pairs, Projection, Rope, Shape};
use std::path::Path;

const MAGIC: u32 = 0x616b_3432;

/// Bytes that are taken off the front, never more than there are.
struct Bytes<'a>(&'a [u8]);

/// How weights lie in the file.
#[derive(Clone, Copy)]
enum Layout {
    Floats,
    /// Bytes, then a scale for each group of so many.
    Groups(usize),
}

/// The model of the file's bytes.
pub fn model(path: &Path) -> Result<Model, String> {
    let file = std::fs::read(path).map_err(|error| error.to_string())?;
    let mut bytes = Bytes(&file);
    match bytes.number()? {
        MAGIC => later(&file),
        _ => first(&file),
    }
}

impl Bytes<'_> {
    fn take(&mut self, count: usize) -> Result<&[u8], String> {
        let parts = self.0.split_at_checked(count);
        let (taken, rest) = parts.ok_or("it is cut short, or no checkpoint of llama2.c")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, String> {
        let bytes = self.take(4)?.try_into().map_err(|_| "it is cut short")?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn vector(&mut self, count: usize) -> Result<Vec<f32>, String> {
        let bytes = self.take(count.saturating_mul(4))?.chunks_exact(4);
        Ok(bytes
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect())
    }

    /// `count` matrices of the same sizes.
    fn matrices(
        &mut self,
        layout: Layout,
        count: usize,
        rows: usize,
        columns: usize,
    ) -> Result<Vec<Matrix>, String> {
        let values = rows.saturating_mul(columns);
        let one = |_| match layout {
            Layout::Floats => Matrix::floats(self.take(values.saturating_mul(4))?, rows, columns),
            Layout::Groups(size) => {
                let whole = self.take(values)?.to_vec();
                let scales = self.vector(values / size)?;
                let groups = whole.chunks_exact(size).zip(&scales);
                let floats = groups.flat_map(|(group, scale)| {
                    group
                        .iter()
                        .map(move |byte| f32::from(byte.cast_signed()) * scale)
                });
                let bytes: Vec<u8> = floats.flat_map(f32::to_le_bytes).collect();
                Matrix::floats(&bytes, rows, columns)
            }
        };
        (0..count).map(one).collect()
    }
}

/// The sizes, in the order of all layouts; the sign of the vocabulary's is left to the caller.
fn header(bytes: &mut Bytes<'_>) -> Result<(Shape, bool), String> {
    let mut numbers = [0_i32; 7];
    for number in &mut numbers {
        *number = bytes.number()?.cast_signed();
    }
    let [dim, inner, layers, heads, kv_heads, words, context] = numbers;
    let size = |number: i32| usize::try_from(number).unwrap_or(0);
    let head = size(dim).checked_div(size(heads)).unwrap_or(0);
    // Before anything is made of it.
    let most = head.min(1 << 12);
    let shape = Shape {
        dim: size(dim),
        inner: size(inner),
        layers: size(layers),
        heads: size(heads),
        kv_heads: size(kv_heads),
        head,
        words: words.unsigned_abs() as usize,
        context: size(context),
        epsilon: 1e-5,
        rope: Rope::new(Pairs::Adjacent, most, 10_000.0, 1.0, None),
    };
    let checked = shape
        .check()
        .and_then(|()| match shape.dim == head * shape.heads {
            true => Ok(()),
            false => Err("its width is no multiple of its heads".to_owned()),
        });
    checked.map_err(|why| format!("it is no checkpoint of llama2.c: {why}"))?;
    Ok((shape, words > 0))
}

fn first(file: &[u8]) -> Result<Model, String> {
    let mut bytes = Bytes(file);
    let (shape, shared) = header(&mut bytes)?;
    let (dim, count) = (shape.dim, shape.layers);
    let embeddings = one(bytes.matrices(Layout::Floats, 1, shape.words, dim)?)?;
    let attention_norms = bytes.vector(count * dim)?;
    let attention = attention(&mut bytes, Layout::Floats, &shape)?;
    let inner_norms = bytes.vector(count * dim)?;
    let inner = inner(&mut bytes, Layout::Floats, &shape)?;
    let norm = bytes.vector(dim)?;
    // Tables of angles.
    bytes.take(shape.context.saturating_mul(shape.head).saturating_mul(4))?;
    let output = match shared {
        true => None,
        false => Some(one(bytes.matrices(Layout::Floats, 1, shape.words, dim)?)?),
    };
    let layers = layers(&shape, [attention_norms, inner_norms], attention, inner);
    Ok(Model {
        shape,
        embeddings,
        layers,
        norm,
        output,
    })
}

fn later(file: &[u8]) -> Result<Model, String> {
    let mut bytes = Bytes(file);
    bytes.number()?;
    let version = bytes.number()?;
    let (shape, _) = header(&mut bytes)?;
    let shared = bytes.take(1)?[0] != 0;
    let layout = match version {
        1 => Layout::Floats,
        2 => match bytes.number()? as usize {
            size if size > 0
                && shape.dim.is_multiple_of(size)
                && shape.inner.is_multiple_of(size) =>
            {
                Layout::Groups(size)
            }
            size => return Err(format!("its groups of {size} do not fit its sizes")),
        },
        other => {
            return Err(format!(
                "its layout has the version {other}; 1 and 2 run here"
            ));
        }
    };
    let (dim, count) = (shape.dim, shape.layers);
    let mut bytes = Bytes(file);
    bytes.take(256)?;
    let norms = [bytes.vector(count * dim)?, bytes.vector(count * dim)?];
    let norm = bytes.vector(dim)?;
    let embeddings = one(bytes.matrices(layout, 1, shape.words, dim)?)?;
    let attention = attention(&mut bytes, layout, &shape)?;
    let inner = inner(&mut bytes, layout, &shape)?;
    let output = match shared {
        true => None,
        false => Some(one(bytes.matrices(layout, 1, shape.words, dim)?)?),
    };
    let layers = layers(&shape, norms, attention, inner);
    Ok(Model {
        shape,
        embeddings,
        layers,
        norm,
        output,
    })
}

/// All layers' queries, then all keys, values and outputs.
fn attention(
    bytes: &mut Bytes<'_>,
    layout: Layout,
    shape: &Shape,
) -> Result<[Vec<Matrix>; 4], String> {
    let (count, dim, keys) = (shape.layers, shape.dim, shape.kv_heads * shape.head);
    Ok([
        bytes.matrices(layout, count, dim, dim)?,
        bytes.matrices(layout, count, keys, dim)?,
        bytes.matrices(layout, count, keys, dim)?,
        bytes.matrices(layout, count, dim, dim)?,
    ])
}

/// All layers' gates, then all downs and ups.
fn inner(bytes: &mut Bytes<'_>, layout: Layout, shape: &Shape) -> Result<[Vec<Matrix>; 3], String> {
    let (count, dim, inner) = (shape.layers, shape.dim, shape.inner);
    Ok([
        bytes.matrices(layout, count, inner, dim)?,
        bytes.matrices(layout, count, dim, inner)?,
        bytes.matrices(layout, count, inner, dim)?,
    ])
}

fn layers(
    shape: &Shape,
    norms: [Vec<f32>; 2],
    attention: [Vec<Matrix>; 4],
    inner: [Vec<Matrix>; 3],
) -> Vec<Layer> {
    let [queries, keys, values, outputs] = attention;
    let [gates, downs, ups] = inner;
    let [attention_norms, inner_norms] = &norms;
    let attention = queries.into_iter().zip(keys).zip(values).zip(outputs);
    let inner = gates.into_iter().zip(downs).zip(ups);
    let norms = attention_norms
        .chunks(shape.dim)
        .zip(inner_norms.chunks(shape.dim));
    let all = norms.zip(attention).zip(inner);
    let layer = |((norms, attention), inner): (((&[f32], &[f32]), _), _)| {
        let (((query, key), value), attention_output) = attention;
        let ((gate, down), up) = inner;
        Layer {
            attention_norm: norms.0.to_vec(),
            query: Projection::plain(query),
            key: Projection::plain(key),
            value: Projection::plain(value),
            attention_output,
            inner_norm: norms.1.to_vec(),
            gate,
            up,
            down,
        }
    };
    all.map(layer).collect()
}

fn one(matrices: Vec<Matrix>) -> Result<Matrix, String> {
    matrices
        .into_iter()
        .next()
        .ok_or_else(|| "it has no weights".to_owned())
}
