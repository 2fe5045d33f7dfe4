//! Which chunks of a fill are there, which are under way. Pure.

/// Two bits and a checksum for each chunk.
#[derive(Debug)]
pub(crate) struct Chunks {
    have: Vec<u64>,
    under_way: Vec<u64>,
    sums: Vec<u64>,
    missing: u64,
    /// Of chunks that are under way, the bytes that are there already.
    begun: Vec<(u64, u64)>,
}

impl Chunks {
    /// None of `count` chunks.
    pub(crate) fn new(count: u64) -> Self {
        let words = count.div_ceil(64) as usize;
        Chunks {
            have: vec![0; words],
            under_way: vec![0; words],
            sums: vec![0; count as usize],
            missing: count,
            begun: Vec::new(),
        }
    }

    /// How many there are in all.
    pub(crate) fn count(&self) -> u64 {
        self.sums.len() as u64
    }

    /// How many are there.
    pub(crate) fn present(&self) -> u64 {
        self.count() - self.missing
    }

    /// Whether all are there.
    pub(crate) fn complete(&self) -> bool {
        self.missing == 0
    }

    /// Whether that one is there.
    pub(crate) fn has(&self, chunk: u64) -> bool {
        bit(&self.have, chunk)
    }

    /// Whether the first bytes of that one are there.
    pub(crate) fn has_bytes(&self, chunk: u64, upto: u64) -> bool {
        self.has(chunk) || self.begun.iter().any(|(begun, bytes)| *begun == chunk && *bytes >= upto)
    }

    /// Of a chunk that was begun, the first bytes are there.
    pub(crate) fn grew(&mut self, chunk: u64, bytes: u64) {
        self.begun.retain(|(begun, _)| *begun != chunk);
        self.begun.push((chunk, bytes));
    }

    /// Takes a chunk that is neither there nor under way; `false` if it is.
    pub(crate) fn begin(&mut self, chunk: u64) -> bool {
        if chunk >= self.count() || bit(&self.have, chunk) || bit(&self.under_way, chunk) {
            return false;
        }
        self.under_way[(chunk / 64) as usize] |= 1 << (chunk % 64);
        true
    }

    /// Takes the first chunk of `from..to` that is neither there nor under way.
    pub(crate) fn begin_in(&mut self, from: u64, to: u64) -> Option<u64> {
        let to = to.min(self.count());
        let mut chunk = from;
        while chunk < to {
            let word = (chunk / 64) as usize;
            let free = !(self.have[word] | self.under_way[word]) >> (chunk % 64);
            if free != 0 {
                let first = chunk + u64::from(free.trailing_zeros());
                return (first < to && self.begin(first)).then_some(first);
            }
            chunk = (chunk / 64 + 1) * 64;
        }
        None
    }

    /// A chunk that was begun is there.
    pub(crate) fn arrived(&mut self, chunk: u64, sum: u64) {
        self.failed(chunk);
        if !self.has(chunk) {
            self.have[(chunk / 64) as usize] |= 1 << (chunk % 64);
            self.sums[chunk as usize] = sum;
            self.missing -= 1;
        }
    }

    /// A chunk that was begun did not come: it may be begun again.
    pub(crate) fn failed(&mut self, chunk: u64) {
        self.begun.retain(|(begun, _)| *begun != chunk);
        self.under_way[(chunk / 64) as usize] &= !(1 << (chunk % 64));
    }

    /// The checksums, by chunk; of those that are there.
    pub(crate) fn sums(&self) -> &[u64] {
        &self.sums
    }
}

fn bit(words: &[u64], at: u64) -> bool {
    words.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chunk_is_begun_once_and_found_by_scan() {
        let mut chunks = Chunks::new(130);
        assert!(chunks.begin(64) && !chunks.begin(64) && !chunks.begin(130));
        assert_eq!(chunks.begin_in(60, 70), Some(60));
        for expected in [61, 62, 63, 65, 66] {
            assert_eq!(chunks.begin_in(60, 70), Some(expected));
        }
        chunks.grew(62, 100);
        assert!(chunks.has_bytes(62, 100) && !chunks.has_bytes(62, 101) && !chunks.has(62));
        chunks.failed(62);
        assert!(!chunks.has_bytes(62, 1));
        assert_eq!(chunks.begin_in(0, 1), Some(0));
        assert_eq!(chunks.begin_in(61, 64), Some(62));
        assert_eq!(chunks.begin_in(61, 64), None);
        assert_eq!(chunks.begin_in(128, u64::MAX), Some(128));
        for chunk in 0..130 {
            chunks.begin(chunk);
            assert!(!chunks.complete());
            chunks.arrived(chunk, chunk + 1);
            chunks.arrived(chunk, 0);
        }
        assert!(chunks.complete() && chunks.has(129) && !chunks.has(130));
        assert_eq!((chunks.present(), chunks.sums()[129], chunks.begin_in(0, 130)), (130, 130, None));
    }
}
