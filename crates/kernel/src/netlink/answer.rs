//! The kernel's answers, taken apart: payloads, acknowledgements, refusals with the kernel's own
//! words. Bytes go in; a length that does not fit is reported, never followed.

use super::attributes::{attributes, text};

/// The length of a message header.
pub(super) const HEADER: usize = 16;

/// The messages of a datagram; `None` for one that does not fit.
pub(super) struct Answers<'a>(pub(super) &'a [u8]);

/// One message.
pub(super) struct Answer<'a> {
    kind: u16,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    pub(super) payload: &'a [u8],
}

/// What a message says about its request.
pub(super) enum Verdict {
    Payload,
    Skip,
    /// Acknowledgement, end of a dump, or refusal with the kernel's words.
    Code(i32, Option<String>),
}

impl<'a> Iterator for Answers<'a> {
    type Item = Option<Answer<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let answer = (|| {
            let header = self.0.get(..HEADER)?;
            let word = |at: usize| {
                u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
            };
            let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
            let length = word(0) as usize;
            let payload = self.0.get(HEADER..length)?;
            self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
            Some(Answer {
                kind: half(4),
                flags: half(6),
                sequence: word(8),
                payload,
            })
        })();
        if answer.is_none() {
            self.0 = &[];
        }
        Some(answer)
    }
}

impl Answer<'_> {
    /// Reads it.
    pub(super) fn verdict(&self) -> Verdict {
        if !matches!(self.kind, NLMSG_NOOP | NLMSG_ERROR | NLMSG_DONE) {
            return Verdict::Payload;
        }
        if self.kind == NLMSG_NOOP {
            return Verdict::Skip;
        }
        let code = self.payload.get(..4).and_then(|c| c.try_into().ok());
        let errno = code
            .map(i32::from_ne_bytes)
            .unwrap_or_default()
            .saturating_neg()
            .max(0);
        if errno == 0 || self.flags & NLM_F_ACK_TLVS == 0 {
            return Verdict::Code(errno, None);
        }
        // After the code comes the refused request: its header only, if capped.
        let mut skip = 4;
        if self.kind == NLMSG_ERROR {
            let inner = self.payload.get(4..8).and_then(|l| l.try_into().ok());
            let inner = inner.map(u32::from_ne_bytes).unwrap_or_default() as usize;
            let capped = self.flags & NLM_F_CAPPED != 0;
            skip += if capped {
                HEADER
            } else {
                inner.next_multiple_of(4).max(HEADER)
            };
        }
        let words = self.payload.get(skip..).unwrap_or_default();
        let words = attributes(words).find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG);
        Verdict::Code(errno, words.map(|(_, value)| text(value)))
    }
}

const NLMSG_NOOP: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_CAPPED: u16 = 0x100;
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + payload.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn lengths_that_do_not_fit_are_reported_once() {
        for bytes in [&[1_u8][..], &[0; 16], &[15; 16], &[0xff; 64]] {
            let read: Vec<_> = Answers(bytes).collect();
            assert_eq!(read.len(), 1, "{bytes:?}");
            assert!(read[0].is_none(), "{bytes:?}");
        }
        assert_eq!(Answers(&[]).count(), 0);
    }

    #[test]
    fn several_messages() {
        let mut bytes = message(20, 2, b"abcde");
        bytes.extend(message(NLMSG_DONE, 2, &[0; 4]));
        let read: Vec<_> = Answers(&bytes).flatten().collect();
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].payload, read[0].sequence), (&b"abcde"[..], 7));
        assert!(matches!(read[1].verdict(), Verdict::Code(0, None)));
    }

    #[test]
    fn the_kernels_words() {
        let mut payload = (-17_i32).to_ne_bytes().to_vec();
        payload.extend(message(16, 0, &[]));
        payload.extend([9, 0, 1, 0]);
        payload.extend(b"taken\0\0\0");
        let bytes = message(NLMSG_ERROR, NLM_F_CAPPED | NLM_F_ACK_TLVS, &payload);
        let answer = Answers(&bytes).flatten().next().unwrap();
        let Verdict::Code(errno, words) = answer.verdict() else {
            panic!("not a refusal")
        };
        assert_eq!((errno, words.as_deref()), (17, Some("taken")));
    }

    #[test]
    fn refusals_cut_short() {
        for payload in [
            &[][..],
            &[1],
            &[0xef, 0xff, 0xff, 0xff],
            &[0xef, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            for flags in [0, NLM_F_ACK_TLVS, NLM_F_CAPPED | NLM_F_ACK_TLVS] {
                let bytes = message(NLMSG_ERROR, flags, payload);
                let answer = Answers(&bytes).flatten().next().unwrap();
                assert!(
                    matches!(answer.verdict(), Verdict::Code(0 | 17, None)),
                    "{payload:?}"
                );
            }
        }
        let bytes = message(NLMSG_ERROR, 0, &i32::MIN.to_ne_bytes());
        assert!(
            Answers(&bytes)
                .flatten()
                .all(|a| matches!(a.verdict(), Verdict::Code(i32::MAX, None)))
        );
    }
}
