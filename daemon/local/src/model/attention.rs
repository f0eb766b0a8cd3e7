//! Keys and values of what was read, and looking back at them. Must never look beyond a token's own place.

use super::Shape;
use candle_core::utils::barrier_pool;
use std::sync::{Mutex, PoisonError};

/// Keys and values by layer and head, in the order of positions.
pub struct Cache {
    layers: Vec<Vec<Head>>,
    head: usize,
    len: usize,
}

/// Of one layer and one head.
#[derive(Clone, Default)]
pub struct Head {
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Cache {
    pub fn new(shape: &Shape) -> Self {
        Self {
            layers: vec![vec![Head::default(); shape.kv_heads]; shape.layers],
            head: shape.head,
            len: 0,
        }
    }

    /// Tokens in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Another with the first tokens of this one.
    pub fn copy(&self, len: usize) -> Self {
        let values = len * self.head;
        let head = |head: &Head| Head {
            keys: head.keys[..values].to_vec(),
            values: head.values[..values].to_vec(),
        };
        let layer = |layer: &Vec<Head>| layer.iter().map(head).collect();
        Self {
            layers: self.layers.iter().map(layer).collect(),
            head: self.head,
            len,
        }
    }

    /// Forgets all but the first tokens.
    pub fn cut(&mut self, len: usize) {
        self.len = self.len.min(len);
        let values = self.len * self.head;
        for head in self.layers.iter_mut().flatten() {
            head.keys.truncate(values);
            head.values.truncate(values);
        }
    }

    pub(super) fn grow(&mut self, count: usize) {
        self.len += count;
    }

    pub(super) fn layer(&self, index: usize) -> &[Head] {
        &self.layers[index]
    }

    /// Rows of keys and values, a row for each token.
    pub(super) fn put(&mut self, layer: usize, keys: &[f32], values: &[f32]) {
        let heads = &mut self.layers[layer];
        let width = heads.len() * self.head;
        let rows = keys.chunks(width).zip(values.chunks(width));
        for (keys, values) in rows {
            let parts = keys.chunks(self.head).zip(values.chunks(self.head));
            for (head, (keys, values)) in heads.iter_mut().zip(parts) {
                append(&mut head.keys, keys);
                append(&mut head.values, values);
            }
        }
    }
}

/// Tokens that room is made for at once.
const STEP: usize = 256;

/// Without the doubling of a growing list: half of it would be memory for nothing.
fn append(to: &mut Vec<f32>, part: &[f32]) {
    if to.capacity() - to.len() < part.len() {
        to.reserve_exact(STEP * part.len());
    }
    to.extend_from_slice(part);
}

/// What each query sees of the positions up to its own: rows as wide as the queries'.
pub(super) fn attend(shape: &Shape, seen: &[Head], queries: &[f32], start: usize) -> Vec<f32> {
    let (head, width) = (shape.head, shape.heads * shape.head);
    let rows = queries.len() / width;
    let shared = shape.heads / shape.kv_heads;
    // Each worker writes whole heads, and each head is locked once.
    let outs: Vec<Mutex<Vec<f32>>> = (0..shape.heads).map(|_| Mutex::default()).collect();
    let one = |index: usize| {
        let own: Vec<f32> = queries
            .chunks(width)
            .flat_map(|row| &row[index * head..(index + 1) * head])
            .copied()
            .collect();
        let mut out = vec![0.0; rows * head];
        look(&own, &seen[index / shared], head, start, &mut out);
        *outs[index].lock().unwrap_or_else(PoisonError::into_inner) = out;
    };
    barrier_pool().execute_chunked(shape.heads, |range| range.for_each(one));
    let mut all = vec![0.0; queries.len()];
    for (index, out) in outs.into_iter().enumerate() {
        let out = out.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (row, part) in all.chunks_mut(width).zip(out.chunks(head)) {
            row[index * head..(index + 1) * head].copy_from_slice(part);
        }
    }
    all
}

fn look(queries: &[f32], seen: &Head, head: usize, start: usize, out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { look_avx2(queries, seen, head, start, out) };
    }
    look_with::<false>(queries, seen, head, start, out);
}

/// The same, compiled for processors with eight lanes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn look_avx2(queries: &[f32], seen: &Head, head: usize, start: usize, out: &mut [f32]) {
    look_with::<true>(queries, seen, head, start, out);
}

#[inline(always)]
fn look_with<const FUSED: bool>(
    queries: &[f32],
    seen: &Head,
    head: usize,
    start: usize,
    out: &mut [f32],
) {
    let scale = 1.0 / (head as f32).sqrt();
    // Loops and no closures: a closure is a function of its own, which would not be compiled for the eight lanes.
    let mut weights = vec![0.0; start + queries.len() / head];
    let rows = queries.chunks_exact(head).zip(out.chunks_exact_mut(head));
    for (row, (query, out)) in rows.enumerate() {
        let count = start + row + 1;
        let (keys, values) = (&seen.keys[..count * head], &seen.values[..count * head]);
        let weights = &mut weights[..count];
        let mut most = f32::NEG_INFINITY;
        for (weight, key) in weights.iter_mut().zip(keys.chunks_exact(head)) {
            *weight = dot::<FUSED>(query, key) * scale;
            most = most.max(*weight);
        }
        let mut sums = [0.0_f32; 8];
        for part in weights.chunks_mut(8) {
            for (weight, sum) in part.iter_mut().zip(&mut sums) {
                *weight = exp(*weight - most);
                *sum += *weight;
            }
        }
        for (weight, value) in weights.iter().zip(values.chunks_exact(head)) {
            for (out, value) in out.iter_mut().zip(value) {
                *out = multiply_add::<FUSED>(*weight, *value, *out);
            }
        }
        let sum: f32 = sums.iter().sum();
        for value in out {
            *value /= sum;
        }
    }
}

#[inline(always)]
fn dot<const FUSED: bool>(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 16];
    let (a, b) = (a.chunks_exact(16), b.chunks_exact(16));
    let mut sum = 0.0;
    for (a, b) in a.remainder().iter().zip(b.remainder()) {
        sum += a * b;
    }
    for (a, b) in a.zip(b) {
        for lane in 0..16 {
            lanes[lane] = multiply_add::<FUSED>(a[lane], b[lane], lanes[lane]);
        }
    }
    for lane in lanes {
        sum += lane;
    }
    sum
}

/// Fused only where the processor does it: the library's function is slow.
#[inline(always)]
fn multiply_add<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// e to the power of `x`, to five digits, without a branch: a compiler makes eight of it at once.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let x = (x * std::f32::consts::LOG2_E).clamp(-126.0, 126.0);
    let shifted = x + 12_582_912.0;
    let whole = shifted - 12_582_912.0;
    let part = (x - whole) * std::f32::consts::LN_2;
    let series = 1.0
        + part
            * (1.0
                + part
                    * (0.5
                        + part
                            * (1.0 / 6.0
                                + part
                                    * (1.0 / 24.0 + part * (1.0 / 120.0 + part * (1.0 / 720.0))))));
    let power = (shifted.to_bits() << 23).wrapping_add(0x3f80_0000);
    series * f32::from_bits(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_as_good_as_the_librarys() {
        for step in -8000..8000 {
            let x = step as f32 / 100.0;
            let (ours, theirs) = (exp(x), x.exp());
            assert!(
                (ours - theirs).abs() <= theirs * 1e-5,
                "{x}: {ours} {theirs}"
            );
        }
    }

    #[test]
    fn both_ways_of_looking_see_the_same() {
        let head = 24;
        let wave =
            |count: usize, step: f32| (0..count * head).map(|i| (i as f32 * step).sin()).collect();
        let seen = Head {
            keys: wave(9, 0.3),
            values: wave(9, 0.7),
        };
        let queries: Vec<f32> = wave(2, 0.9);
        let (mut fast, mut plain) = (vec![0.0; 2 * head], vec![0.0; 2 * head]);
        look(&queries, &seen, head, 7, &mut fast);
        look_with::<false>(&queries, &seen, head, 7, &mut plain);
        let close = fast.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(close, "{fast:?} {plain:?}");
    }
}
