//! One input from those that there are: some changes, one after the other.

use crate::{Rng, attributes, bytes, json};

/// What inputs of a target are: which changes they survive long enough to be worth reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text or bytes without a shape that is known here.
    Bytes,
    /// JSON, also in strings.
    Json,
    /// What the kernel answers: headers and attributes. Its files are written in hexadecimal.
    Attributes,
}

/// What changes are made of.
pub(crate) struct Material<'a> {
    pub(crate) kind: Kind,
    /// Words that the reader looks for.
    pub(crate) words: &'a [&'a str],
    /// Inputs that there are; at least one.
    pub(crate) pool: &'a [Vec<u8>],
    /// No input is longer.
    pub(crate) most: usize,
}

impl Material<'_> {
    /// The next input.
    pub(crate) fn next(&self, rng: &mut Rng) -> Vec<u8> {
        let mut input = self.any(rng).clone();
        for _ in 0..=rng.below(5) {
            // Each kind is also changed as bytes are: its reader must bear that too.
            let changed = match self.kind {
                Kind::Json if rng.below(8) > 0 => json::change(&input, self, rng),
                Kind::Attributes if rng.below(4) > 0 => attributes::change(&input, rng),
                _ => None,
            };
            input = changed.unwrap_or_else(|| bytes::change(input, self, rng));
            input.truncate(self.most);
        }
        input
    }

    pub(crate) fn any(&self, rng: &mut Rng) -> &Vec<u8> {
        rng.one_of(self.pool)
    }

    /// A word of the reader's, or one that readers stumble over.
    pub(crate) fn word(&self, rng: &mut Rng) -> String {
        match rng.below(3) {
            0 => (*rng.one_of(&TRAPS)).to_owned(),
            _ if self.words.is_empty() => String::new(),
            _ => (*rng.one_of(self.words)).to_owned(),
        }
    }
}

/// Text that has broken readers: edges of numbers, addresses and names, other scripts, control characters.
const TRAPS: [&str; 40] = [
    "",
    " ",
    "0",
    "-1",
    "+1",
    "00",
    "1e999",
    "255",
    "256",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "NaN",
    "null",
    "true",
    "True",
    "None",
    "0.0.0.0/0",
    "::/0",
    "255.255.255.255/32",
    "::ffff:10.0.0.1",
    "::ffff:10.0.0.0/120",
    "fe80::1%eth0",
    "010.0.0.1",
    "10.0.0.0/33",
    "../..",
    "/",
    "a/b",
    "\0",
    "\r\n",
    "%00",
    "\u{feff}",
    "\u{212a}",
    "\u{17f}",
    "\u{202e}x",
    "e\u{301}\u{1f600}",
];
