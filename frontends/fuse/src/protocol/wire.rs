//! Fixed structures as the kernel lays them out: fields in order, no hidden padding, the machine's byte order.

/// Something of a fixed size in a message.
pub(crate) trait Wire: Sized {
    /// Bytes.
    const SIZE: usize;

    /// Reads one from the front of `bytes`, which then begin behind it; `None` (and `bytes` as before) if too short.
    fn take(bytes: &mut &[u8]) -> Option<Self>;

    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);
}

macro_rules! wire_number {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            const SIZE: usize = size_of::<$number>();

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let (first, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(<$number>::from_ne_bytes(*first))
            }

            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}

wire_number!(u16, u32, u64, i32, i64);

/// Reserved space: ignored when read, zero when written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pad<const N: usize>;

impl<const N: usize> Wire for Pad<N> {
    const SIZE: usize = N;

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        *bytes = bytes.get(N..)?;
        Some(Pad)
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.resize(out.len() + N, 0);
    }
}

/// Declares structures of the protocol: `wire_struct! { Name { field: type, ... } ... }`.
macro_rules! wire_struct {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $name {
            $(pub(crate) $field: $kind),*
        }

        impl $crate::protocol::wire::Wire for $name {
            const SIZE: usize = 0 $(+ <$kind as $crate::protocol::wire::Wire>::SIZE)*;

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                if bytes.len() < Self::SIZE {
                    return None;
                }
                Some($name { $($field: <$kind as $crate::protocol::wire::Wire>::take(bytes)?),* })
            }

            fn put(&self, out: &mut Vec<u8>) {
                $($crate::protocol::wire::Wire::put(&self.$field, out);)*
            }
        }
    )*};
}

pub(crate) use wire_struct;
