//! Mutated datagrams: several messages, refusals with words, lengths that do not fit. What messages carry is read too.

use super::answer::{Answers, HEADER, Verdict};
use crate::fuzz;
use plexus_fuzz::{Kind, bounded};

#[test]
fn datagram() {
    fuzz::target("datagram", Kind::Attributes)
        .inputs(3_000)
        .run(|input| {
            let mut made = Vec::new();
            let (mut count, mut carried) = (0, 0);
            for answer in Answers(input) {
                count += 1;
                let Some(answer) = answer else {
                    made.push("a length is wrong".to_owned());
                    continue;
                };
                carried += answer.payload.len();
                match answer.verdict() {
                    Verdict::Payload => made.push(fuzz::read(answer.payload)),
                    Verdict::Skip => made.push("skipped".to_owned()),
                    Verdict::Code(errno, words) => {
                        assert!(errno >= 0, "{errno}");
                        let words = words.unwrap_or_default();
                        bounded("the kernel's words", &words, 3 * input.len());
                        made.push(format!("{} {}", errno == 0, words.is_empty()));
                    }
                }
            }
            assert!(count <= input.len() / HEADER + 1, "{count} messages");
            assert!(carried <= input.len(), "{carried} bytes");
            made.truncate(4);
            made.join("; ")
        });
}
