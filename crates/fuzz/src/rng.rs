//! Random numbers that a seed repeats (xorshift64*). The seed is printed by who uses it.

/// A generator.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// From a seed; zero is replaced, since it would stay zero.
    pub fn new(seed: u64) -> Self {
        Self(if seed == 0 {
            0x9e37_79b9_7f4a_7c15
        } else {
            seed
        })
    }

    /// From `PLEXUS_TEST_SEED`, else from the clock. Gives the seed, to be printed.
    pub fn from_env() -> (Self, u64) {
        let given = std::env::var("PLEXUS_TEST_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(1, |since| since.as_nanos() as u64)
        });
        (Self::new(seed), seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end
    }

    /// One of them, of which there is at least one.
    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.position(all.len())]
    }

    /// A position below `end`, which is not zero.
    pub fn position(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }
}
