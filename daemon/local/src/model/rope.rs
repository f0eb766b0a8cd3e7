//! Rotation of queries and keys by their position. Must never allocate for each token.

/// How a model rotates.
#[derive(Clone, Debug)]
pub struct Rope {
    pub pairs: Pairs,
    /// Values of each head that take part.
    pub dims: usize,
    /// The angle that each pair turns by for one position.
    pub steps: Vec<f32>,
}

/// Which values turn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// Neighbours.
    Adjacent,
    /// One of the first half with one of the second.
    Halves,
}

impl Rope {
    /// `slower` divides each pair's step, where a file has such a table; `scale` divides all of them.
    pub fn new(pairs: Pairs, dims: usize, base: f32, scale: f32, slower: Option<&[f32]>) -> Self {
        let step = |pair: usize| {
            let slower = slower.and_then(|slower| slower.get(pair)).copied();
            let power = -2.0 * pair as f64 / dims as f64;
            let step = f64::from(base).powf(power) / f64::from(slower.unwrap_or(1.0));
            (step / f64::from(scale)) as f32
        };
        Self {
            pairs,
            dims,
            steps: (0..dims / 2).map(step).collect(),
        }
    }

    /// Rows of `heads` heads, the first at position `start`.
    pub fn turn(&self, rows: &mut [f32], heads: usize, head: usize, start: usize) {
        let half = self.dims / 2;
        for (position, row) in rows.chunks_mut(heads * head).enumerate() {
            for (pair, step) in self.steps.iter().enumerate() {
                let (sin, cos) = ((start + position) as f32 * step).sin_cos();
                let (first, second) = match self.pairs {
                    Pairs::Adjacent => (2 * pair, 2 * pair + 1),
                    Pairs::Halves => (pair, pair + half),
                };
                for head in row.chunks_mut(head) {
                    let (a, b) = (head[first], head[second]);
                    head[first] = a * cos - b * sin;
                    head[second] = a * sin + b * cos;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned(pairs: Pairs, start: usize) -> Vec<f32> {
        let mut row = vec![1.0, 0.0, 0.0, 0.0];
        Rope::new(pairs, 4, 10_000.0, 1.0, None).turn(&mut row, 1, 4, start);
        row
    }

    #[test]
    fn a_pair_is_neighbours_or_a_half_apart() {
        let (sin, cos) = 3.0_f32.sin_cos();
        assert_eq!(turned(Pairs::Adjacent, 3), [cos, sin, 0.0, 0.0]);
        assert_eq!(turned(Pairs::Halves, 3), [cos, 0.0, sin, 0.0]);
        assert_eq!(turned(Pairs::Halves, 0), [1.0, 0.0, 0.0, 0.0]);
    }
}
