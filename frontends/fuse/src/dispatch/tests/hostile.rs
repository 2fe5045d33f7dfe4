//! Messages that no kernel sends: every one is answered once or is one that has no answer, and nothing panics.

use super::*;
use crate::protocol::decode::tests::one_of_each;
use proptest::prelude::*;

/// Serves each message on this thread; returns how many panics there were.
fn serve_all(messages: &[Vec<u8>]) -> u64 {
    let kernel = Arc::new(Kernel::default());
    let setting = Setting {
        backing_device: Some(Arc::new(Ids::default())),
        why_no_backing: "",
        expire_only: true,
        dialect: Dialect { setxattr_ext: true },
        deadline: None,
    };
    let fs = Arc::new(hither_mem::Mem::new());
    let dispatcher = Dispatcher::new(fs, kernel.clone(), setting);
    let mut buffer = PageBuffer::new(1 << 16, DATA_AT);
    let mut reply = Reply::new();
    for (number, message) in messages.iter().enumerate() {
        let length = message.len().min(1 << 16);
        buffer.bytes_mut()[..length].copy_from_slice(&message[..length]);
        if length >= InHeader::SIZE {
            // Each is a request of its own.
            buffer.bytes_mut()[8..16].copy_from_slice(&(2 * number as u64 + 2).to_ne_bytes());
        }
        let destination = Destination { channel: kernel.clone(), slot: 0 };
        let mut arrived = InBuffer { buffer: &mut buffer, length, aligned_at: DATA_AT };
        dispatcher.serve(&mut arrived, destination, &mut reply);
        let code = message.get(4..8).map(|bytes| u32::from_ne_bytes(*bytes.first_chunk().unwrap()));
        let has_answer = kernel.answers.lock().iter().any(|(unique, ..)| *unique == 2 * number as u64 + 2);
        let expects = length >= InHeader::SIZE
            && !matches!(
                code,
                Some(opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT | opcode::SETLKW)
            );
        assert!(has_answer || !expects, "no answer to {code:?}");
    }
    dispatcher.counters.panics.get()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_messages(
        order in proptest::collection::vec(any::<prop::sample::Index>(), 1..40),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        near in any::<bool>(),
    ) {
        let all = one_of_each();
        let mut messages: Vec<Vec<u8>> = order.iter().map(|which| which.get(&all).clone()).collect();
        for message in &mut messages {
            // The root, and the first handles given, so that more than lookups of nothing happens.
            message[16..24].copy_from_slice(&1_u64.to_ne_bytes());
            if near && message.len() >= 48 {
                message[40..48].copy_from_slice(&1_u64.to_ne_bytes());
            }
        }
        for (number, (at, byte)) in damage.iter().enumerate() {
            let index = number % messages.len();
            let message = &mut messages[index];
            let at = at.index(message.len());
            message[at] = *byte;
        }
        prop_assert_eq!(serve_all(&messages), 0);
    }
}
