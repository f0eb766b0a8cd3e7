//! Choosing the next token. Must never choose one that is not a number's worth.

/// How freely.
#[derive(Clone, Copy, Debug)]
pub struct Taste {
    pub temperature: f32,
    pub top_k: usize,
    pub top_p: f32,
    /// What a token's value is divided by when it was said lately.
    pub repeat: f32,
}

impl Default for Taste {
    /// What small models talk sense with.
    fn default() -> Self {
        Self {
            temperature: 0.2,
            top_k: 40,
            top_p: 0.9,
            repeat: 1.1,
        }
    }
}

/// Tokens back that count as lately.
const LATELY: usize = 64;

pub struct Sampler {
    taste: Taste,
    state: u64,
}

impl Sampler {
    pub fn new(taste: Taste, seed: u64) -> Self {
        Self {
            taste,
            state: seed | 1,
        }
    }

    /// `said` are the tokens of the answer so far.
    pub fn next(&mut self, logits: &mut [f32], said: &[u32]) -> u32 {
        for id in &said[said.len().saturating_sub(LATELY)..] {
            if let Some(value) = logits.get_mut(*id as usize) {
                let factor = self.taste.repeat;
                *value = if *value > 0.0 {
                    *value / factor
                } else {
                    *value * factor
                };
            }
        }
        let mut best: Vec<(f32, u32)> = logits.iter().copied().zip(0..).collect();
        let k = self.taste.top_k.clamp(1, best.len().max(1));
        if best.len() > k {
            best.select_nth_unstable_by(k - 1, |a, b| b.0.total_cmp(&a.0));
            best.truncate(k);
        }
        best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        self.draw(&best)
    }

    fn draw(&mut self, best: &[(f32, u32)]) -> u32 {
        let Some(first) = best.first() else {
            return 0;
        };
        let weigh = |value: f32| ((value - first.0) / self.taste.temperature).exp();
        let weights: Vec<f32> = best.iter().map(|(value, _)| weigh(*value)).collect();
        let all: f32 = weights.iter().sum();
        let mut kept = 0.0;
        let enough = |weight: &f32| {
            kept += weight;
            kept >= self.taste.top_p * all
        };
        let count = weights
            .iter()
            .position(enough)
            .map_or(weights.len(), |at| at + 1);
        let mut point = self.random() * weights[..count].iter().sum::<f32>();
        for (weight, (_, id)) in weights[..count].iter().zip(best) {
            point -= weight;
            if point <= 0.0 {
                return *id;
            }
        }
        first.1
    }

    /// Between 0 and 1 (xorshift64*).
    fn random(&mut self) -> f32 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let bits = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40;
        bits as f32 / (1_u32 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(logits: &[f32], said: &[u32], seed: u64) -> u32 {
        Sampler::new(Taste::default(), seed).next(&mut logits.to_vec(), said)
    }

    #[test]
    fn a_clear_winner_wins_whatever_the_seed() {
        let logits = [0.0, 9.0, 1.0];
        assert!((0..50).all(|seed| chosen(&logits, &[], seed) == 1));
    }

    #[test]
    fn what_was_said_lately_loses_a_tie() {
        let logits = [5.0, 5.0];
        let picks: Vec<u32> = (1..200)
            .map(|seed| chosen(&logits, &[0], seed * 7919))
            .collect();
        let ones = picks.iter().filter(|id| **id == 1).count();
        assert!(ones > 150, "{ones}");
    }

    #[test]
    fn values_that_are_no_numbers_choose_something() {
        let id = chosen(&[f32::NAN, f32::NAN], &[], 3);
        assert!(id < 2);
    }
}
