//! Bodies cut into pieces for the journal. An agent sends its whole history again with every request: what it shares with the one
//! before is neither hashed nor stored again.

use std::collections::VecDeque;
use std::sync::Arc;

use sayso_review::BodyRecord;

/// Sessions of which the last body is remembered, and how large those may be together.
const MOST: usize = 32;
const MOST_BYTES: usize = 64 << 20;

/// The last body of each session.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    last: VecDeque<(String, Arc<[u8]>, BodyRecord)>,
}

impl Bodies {
    /// Cuts a body of a session.
    pub(crate) fn cut(&mut self, session: &str, body: &Arc<[u8]>) -> BodyRecord {
        let earlier = self.last.iter().position(|(of, ..)| of == session).and_then(|place| self.last.remove(place));
        let record = match earlier {
            Some((_, bytes, record)) => BodyRecord::after(body, &record, shared(&bytes, body)),
            None => BodyRecord::of(body),
        };
        self.last.push_back((session.to_owned(), Arc::clone(body), record.clone()));
        while self.last.len() > MOST || self.last.iter().map(|(_, bytes, _)| bytes.len()).sum::<usize>() > MOST_BYTES {
            self.last.pop_front();
        }
        record
    }

    /// Forgets a session that is over.
    pub(crate) fn forget(&mut self, session: &str) {
        self.last.retain(|(of, ..)| of != session);
    }
}

/// How many bytes two have in common at their beginning.
fn shared(one: &[u8], other: &[u8]) -> usize {
    const STEP: usize = 4 << 10;
    let mut same = 0;
    // Whole steps are compared at the speed of memory.
    for (one, other) in one.chunks_exact(STEP).zip(other.chunks_exact(STEP)) {
        if one != other {
            break;
        }
        same += STEP;
    }
    same + one[same..].iter().zip(&other[same..]).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_cut_alike() {
        let mut bodies = Bodies::default();
        let mut body: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
        bodies.cut("s", &body.clone().into());
        for change in [299_999, 150_000, 0] {
            body[change] ^= 1;
            body.push(7);
            let body: Arc<[u8]> = body.clone().into();
            assert_eq!(bodies.cut("s", &body), BodyRecord::of(&body));
        }
        assert_eq!(shared(b"abc", b"abd"), 2);
        assert_eq!(shared(b"abc", b"abcdef"), 3);
    }
}
