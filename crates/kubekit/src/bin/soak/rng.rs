//! Random numbers that a seed repeats (xorshift64*).

/// A generator.
pub(crate) struct Rng(u64);

impl Rng {
    /// From a seed; zero is replaced, since it would stay zero.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.max(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        number as usize % end
    }

    /// One of them; none of an empty list.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        match from.len() {
            0 => None,
            length => from.get(self.below(length)),
        }
    }
}
