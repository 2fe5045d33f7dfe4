//! The keys that a type is read from, asked of serde itself, so that no second list can disagree.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, Visitor};

/// The names of the fields that `T` is deserialized from; none if it is not a struct.
pub fn keys_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut keys: &'static [&'static str] = &[];
    // It always fails, having learnt what it wanted on the way.
    let _ = T::deserialize(Keys(&mut keys));
    keys
}

/// A deserializer that has no data: it only looks at what it is asked for.
struct Keys<'a>(&'a mut &'static [&'static str]);

#[derive(Debug)]
struct NoData;

impl fmt::Display for NoData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no data")
    }
}

impl std::error::Error for NoData {}

impl serde::de::Error for NoData {
    fn custom<T: fmt::Display>(_: T) -> Self {
        NoData
    }
}

impl<'de> Deserializer<'de> for Keys<'_> {
    type Error = NoData;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, NoData> {
        *self.0 = fields;
        Err(NoData)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, NoData> {
        Err(NoData::custom(""))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
