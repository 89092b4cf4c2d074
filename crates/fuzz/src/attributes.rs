//! Changes to what the kernel answers: attributes with wrong lengths, of other kinds, twice, away, or one inside the
//! other. Which bytes are attributes is guessed: those that fit one behind the other up to the end.

use crate::Rng;
use std::ops::Range;

/// Changes an attribute; none if no bytes of it look like one.
pub(crate) fn change(input: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    find(input, 0..input.len(), 0, &mut all);
    if all.is_empty() {
        return None;
    }
    let at = rng.one_of(&all).clone();
    let mut changed = input.to_vec();
    let length = u16::from_ne_bytes([input[at.start], input[at.start + 1]]);
    match rng.below(8) {
        0 => set(&mut changed, at.start, length.wrapping_add(1)),
        1 => set(&mut changed, at.start, length.wrapping_sub(1)),
        2 => set(&mut changed, at.start, *rng.one_of(&LENGTHS)),
        3 => {
            let kind = u16::from_ne_bytes([input[at.start + 2], input[at.start + 3]]);
            let flags = *rng.one_of(&[0, 0x8000, 0x4000, 0xc000]);
            let near = *rng.one_of(&[kind, kind ^ 1, kind.wrapping_add(1), kind >> 1]);
            set(&mut changed, at.start + 2, near | flags);
        }
        4 => {
            let other = rng.below(70) as u16;
            set(&mut changed, at.start + 2, other);
        }
        5 => resized(&mut changed, &all, at.clone(), &[]),
        6 => {
            let other = input[rng.one_of(&all).clone()].to_vec();
            let both = [&input[at.clone()], &other].concat();
            resized(&mut changed, &all, at.clone(), &both);
        }
        _ => {
            // Its value is shorter or longer than its kind has it.
            let value = &input[at.start + 4..at.end];
            let longer = [value, &[0xff; 8]].concat();
            let kept = rng.position(longer.len() + 1);
            let mut own = input[at.start..at.start + 4].to_vec();
            own.extend(&longer[..kept]);
            let length = own.len() as u16;
            set(&mut own, 0, length);
            own.resize(own.len().next_multiple_of(4), 0);
            resized(&mut changed, &all, at.clone(), &own);
        }
    }
    Some(changed)
}

const LENGTHS: [u16; 10] = [0, 1, 3, 4, 5, 8, 0x7fff, 0x8000, 0xfffc, 0xffff];

fn set(bytes: &mut [u8], at: usize, number: u16) {
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
}

/// Puts other bytes in the place of an attribute. Those around it get the length that they then have.
fn resized(bytes: &mut Vec<u8>, all: &[Range<usize>], at: Range<usize>, new: &[u8]) {
    let padded = at.start..at.end.next_multiple_of(4).min(bytes.len());
    let difference = new.len() as i64 - padded.len() as i64;
    for around in all {
        if around.start < at.start && at.end <= around.end {
            let length = around.len() as i64 + difference;
            set(
                bytes,
                around.start,
                u16::try_from(length).unwrap_or(u16::MAX),
            );
        }
    }
    drop(bytes.splice(padded, new.iter().copied()));
}

/// Lists of attributes may begin after a header, whose length differs from message to message.
fn find(input: &[u8], within: Range<usize>, depth: usize, all: &mut Vec<Range<usize>>) {
    if depth > 4 {
        return;
    }
    for header in [0, 4, 8, 12, 16, 20, 24, 28, 32] {
        let list = list(input, within.start + header..within.end);
        let Some(list) = list.filter(|list| !list.is_empty()) else {
            continue;
        };
        for one in list {
            find(input, one.start + 4..one.end, depth + 1, all);
            all.push(one);
        }
        return;
    }
}

/// The attributes, if they fill all of it.
fn list(input: &[u8], within: Range<usize>) -> Option<Vec<Range<usize>>> {
    let (mut at, mut list) = (within.start, Vec::new());
    while at + 4 <= within.end {
        let length = usize::from(u16::from_ne_bytes([input[at], input[at + 1]]));
        if length < 4 || at + length > within.end {
            return None;
        }
        list.push(at..at + length);
        at += length.next_multiple_of(4);
    }
    (at >= within.end).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four bytes of header; an attribute of one byte; one with another inside.
    const MESSAGE: [u8; 24] = [
        9, 9, 9, 9, 5, 0, 1, 0, 7, 0, 0, 0, 12, 0, 2, 0, 8, 0, 3, 0, 1, 2, 3, 4,
    ];

    #[test]
    fn attributes_are_found_at_each_depth() {
        let mut all = Vec::new();
        find(&MESSAGE, 0..MESSAGE.len(), 0, &mut all);
        assert_eq!(all, [4..9, 16..24, 12..24]);
    }

    #[test]
    fn what_is_around_a_change_fits_it() {
        let mut all = Vec::new();
        find(&MESSAGE, 0..MESSAGE.len(), 0, &mut all);
        let mut changed = MESSAGE.to_vec();
        resized(&mut changed, &all, 16..24, &[]);
        assert_eq!(changed[12..], [4, 0, 2, 0]);
        let mut changed = MESSAGE.to_vec();
        resized(&mut changed, &all, 4..9, &[]);
        assert_eq!(changed.len(), 16);
        assert_eq!(changed[4..6], [12, 0]);
    }
}
