//! Who meets whom, quickly: takes buffers with idle periods, tells of any two whether both are live at some step. Must not
//! know where they lie.

use std::ops::Range;

use crate::Buffer;
use crate::sections::Sections;

/// When each buffer is live, laid out to be compared: far quicker than the buffers themselves.
pub(crate) struct Lives {
    spans: Vec<Range<u32>>, // in sections; those of one buffer after the other's
    first: Vec<usize>,      // buffer -> its first span; one more at the end
    /// All of time in 64 parts: bit `k` of the first says that the buffer is live in part `k`, of the second that it is
    /// live throughout.
    parts: Vec<(u64, u64)>,
}

impl Lives {
    pub(crate) fn new(buffers: &[Buffer]) -> Self {
        let sections = Sections::new(buffers.iter());
        let (mut spans, mut first, mut parts) = (Vec::new(), vec![0], Vec::new());
        let rank = |section| u32::try_from(section).expect("sections are counted in 32 bits");
        let part_len = sections.len().div_ceil(64).max(1);
        let below = |part: usize| if part < 64 { (1u64 << part) - 1 } else { !0 };
        for b in buffers {
            let (mut live, mut throughout) = (0, 0);
            for span in sections.of(b) {
                live |= below(span.end.div_ceil(part_len)) & !below(span.start / part_len);
                throughout |= below(span.end / part_len) & !below(span.start.div_ceil(part_len));
                spans.push(rank(span.start)..rank(span.end));
            }
            parts.push((live, throughout));
            first.push(spans.len());
        }
        Self { spans, first, parts }
    }

    fn of(&self, buffer: usize) -> &[Range<u32>] {
        &self.spans[self.first[buffer]..self.first[buffer + 1]]
    }

    /// Whether both are live at some step. `compared` rises by the spans that had to be compared.
    #[inline]
    pub(crate) fn meet(&self, a: usize, b: usize, compared: &mut usize) -> bool {
        let ((a_live, a_throughout), (b_live, b_throughout)) = (self.parts[a], self.parts[b]);
        if (a_live & b_throughout) | (a_throughout & b_live) != 0 {
            return true;
        }
        a_live & b_live != 0 && self.spans_meet(a, b, compared)
    }

    #[inline(never)] // seldom needed, and in the way of the loop around it
    fn spans_meet(&self, a: usize, b: usize, compared: &mut usize) -> bool {
        let (mut a, mut b) = (self.of(a), self.of(b));
        *compared += a.len() + b.len();
        while let ([x, later_a @ ..], [y, later_b @ ..]) = (a, b) {
            if x.start < y.end && y.start < x.end {
                return true;
            }
            if x.end < y.end {
                a = later_a;
            } else {
                b = later_b;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_buffers() {
        let mut x = 1u64;
        let mut below = |end: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % end
        };
        // Fewer sections than parts, as many, and many more.
        for steps in [3, 30, 64, 65, 1000] {
            let mut buffer = |_| {
                let lower = below(steps);
                let mut b = Buffer::new(lower, lower + 1 + below(steps), below(9));
                while below(4) > 0 {
                    let start = b.idle.last().map_or(lower, |last| last.end) + below(steps / 3);
                    let end = start + 1 + below(steps / 2 + 1);
                    if end >= b.upper {
                        break;
                    }
                    b = b.idle_in(start..end);
                }
                b
            };
            let buffers: Vec<Buffer> = (0..100).map(&mut buffer).chain([Buffer::new(2, 2, 0)]).collect();
            let (lives, mut compared) = (Lives::new(&buffers), 0);
            for (i, a) in buffers.iter().enumerate() {
                for (j, b) in buffers.iter().enumerate() {
                    assert_eq!(lives.meet(i, j, &mut compared), a.meets(b), "{a:?} and {b:?}");
                }
            }
            // Where every section is a part of its own, spans need never be compared.
            assert_eq!(compared == 0, steps <= 30);
        }
    }
}
