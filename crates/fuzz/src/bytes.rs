//! Changes to bytes whose shape does not matter.

use crate::Rng;
use crate::mutate::Material;
use std::ops::Range;

/// Changes something somewhere.
pub(crate) fn change(mut input: Vec<u8>, material: &Material<'_>, rng: &mut Rng) -> Vec<u8> {
    if input.is_empty() {
        return material.word(rng).into_bytes();
    }
    let at = rng.position(input.len());
    match rng.below(13) {
        0 => input[at] ^= 1 << rng.below(8),
        1 => input[at] = rng.below(256) as u8,
        2 => input[at] = *rng.one_of(&EDGES),
        3 => input[at] = input[at].wrapping_add(1),
        4 => drop(input.drain(some(&input, rng))),
        5 => {
            let copy = input[some(&input, rng)].to_vec();
            insert(&mut input, at, &copy);
        }
        6 => {
            let copy = input[some(&input, rng)].to_vec();
            let times = 1 << rng.below(11);
            let most = material.most.saturating_sub(input.len()) / copy.len().max(1);
            insert(&mut input, at, &copy.repeat(most.min(times)));
        }
        7 => input.truncate(at),
        8 => insert(&mut input, at, material.word(rng).as_bytes()),
        9 => {
            let other = material.any(rng);
            let copy = other[some(other, rng)].to_vec();
            insert(&mut input, at, &copy);
        }
        10 => {
            let range = some(&input, rng);
            let word = material.word(rng);
            drop(input.splice(range, word.into_bytes()));
        }
        11 => number(&mut input, material, rng),
        _ => {
            for byte in &mut input[at..] {
                *byte = match byte.is_ascii_lowercase() {
                    true => byte.to_ascii_uppercase(),
                    false => byte.to_ascii_lowercase(),
                };
                if rng.below(6) == 0 {
                    break;
                }
            }
        }
    }
    input
}

const EDGES: [u8; 18] = *b"\0\x01\x7f\x80\xff\n\r\t \",:{}[]\\'";

/// A part: mostly a short one.
fn some(input: &[u8], rng: &mut Rng) -> Range<usize> {
    if input.is_empty() {
        return 0..0;
    }
    let from = rng.position(input.len());
    let rest = input.len() - from;
    let length = match rng.below(4) {
        0 => rng.position(rest) + 1,
        _ => rng.position(rest.min(16)) + 1,
    };
    from..from + length
}

fn insert(input: &mut Vec<u8>, at: usize, more: &[u8]) {
    drop(input.splice(at..at, more.iter().copied()));
}

/// Another number in the place of one that is there.
fn number(input: &mut Vec<u8>, material: &Material<'_>, rng: &mut Rng) {
    let digits: Vec<usize> = (0..input.len())
        .filter(|at| input[*at].is_ascii_digit())
        .collect();
    let Some(start) = (!digits.is_empty()).then(|| *rng.one_of(&digits)) else {
        return;
    };
    let length = input[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let other = match rng.below(3) {
        0 => material.word(rng),
        1 => rng.below(300).to_string(),
        _ => rng.next_u64().to_string(),
    };
    drop(input.splice(start..start + length, other.into_bytes()));
}
