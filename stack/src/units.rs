//! Sizes, times and shares as people write them: `50G`, `500ms`, `5%`; in flags and in files alike.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};

/// A text that is no size, time or share: what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not {expected}")]
pub struct UnitError {
    given: String,
    expected: &'static str,
}

/// A number of bytes, written with K, M, G, T or P (of 1024) or none (bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Size(pub u64);

/// A length of time, written with ms, s, m, h or d or none (seconds), or `inf` (for ever, [`Duration::MAX`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Period(pub Duration);

/// A part of a whole, from 0 to 1, written as `0.95` or `95%`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Share(pub f64);

/// Factors of sizes, largest first.
const SIZES: [(&str, u64); 6] =
    [("P", 1 << 50), ("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10), ("", 1)];

/// Factors of times in milliseconds, largest first.
const TIMES: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

const SIZE_EXPECTED: &str = "a size: write 512, 64K, 100M, 50G, 1.5T (K, M, G, T, P are powers of 1024)";
const PERIOD_EXPECTED: &str = "a time: write 500ms, 1s, 5m, 2h, 1d, or inf";
const SHARE_EXPECTED: &str = "a share: write 5% or 0.05 (from 0 to 1)";

/// Splits `1.5G` into 1.5 and `G`. Signs, exponents and the like are not taken.
fn split(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    (number.starts_with(|c: char| c.is_ascii_digit()) && !number.ends_with('.'))
        .then_some((number, unit.trim()))
}

/// `number` times `factor`, exactly for whole numbers; `None` if it is no number or too large.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let product = number.parse::<f64>().ok()? * factor as f64;
    // 2^53: beyond it a float no longer tells whole bytes apart, and nobody writes a fraction.
    (product < 9e15).then_some(product as u64)
}

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let parse = || {
            let (number, unit) = split(text.trim())?;
            let unit = unit.to_ascii_uppercase();
            let unit = unit.strip_suffix("IB").or(unit.strip_suffix('B')).unwrap_or(&unit);
            let (_, factor) = SIZES.into_iter().find(|(name, _)| *name == unit)?;
            scaled(number, factor)
        };
        parse().map(Size).ok_or_else(|| UnitError { given: text.to_owned(), expected: SIZE_EXPECTED })
    }
}

impl FromStr for Period {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text.trim() == "inf" {
            return Ok(Period(Duration::MAX));
        }
        let parse = || {
            let (number, unit) = split(text.trim())?;
            let unit = if unit.is_empty() { "s" } else { unit };
            let (_, factor) = TIMES.into_iter().find(|(name, _)| *name == unit)?;
            scaled(number, factor).map(Duration::from_millis)
        };
        parse().map(Period).ok_or_else(|| UnitError { given: text.to_owned(), expected: PERIOD_EXPECTED })
    }
}

impl FromStr for Share {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let parse = || match split(text.trim())? {
            (number, "%") => Some(number.parse::<f64>().ok()? / 100.0),
            (number, "") => number.parse().ok(),
            _ => None,
        };
        let share = parse().filter(|share| (0.0..=1.0).contains(share));
        share.map(Share).ok_or_else(|| UnitError { given: text.to_owned(), expected: SHARE_EXPECTED })
    }
}

impl fmt::Display for Size {
    /// For people: three digits or so (`1.5G`), exact only where that is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = SIZES.into_iter().find(|(_, factor)| self.0 >= *factor);
        let (name, factor) = unit.unwrap_or(("", 1));
        match self.0 {
            u64::MAX => f.pad("unlimited"),
            bytes if bytes.is_multiple_of(factor) => f.pad(&format!("{}{name}", bytes / factor)),
            bytes => f.pad(&format!("{:.1}{name}", bytes as f64 / factor as f64)),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Duration::MAX {
            return f.pad("inf");
        }
        let ms = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let exact = TIMES.into_iter().find(|(_, factor)| ms >= *factor && ms.is_multiple_of(*factor));
        let (name, factor) = exact.unwrap_or(("s", 1000));
        f.pad(&format!("{}{name}", ms / factor))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", (self.0 * 1000.0).round() / 10.0))
    }
}

/// Takes a text, or a bare number as the same digits would be.
struct UnitVisitor<T>(std::marker::PhantomData<T>, &'static str);

impl<T: FromStr<Err = UnitError>> Visitor<'_> for UnitVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        number.to_string().parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        number.to_string().parse().map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        number.to_string().parse().map_err(E::custom)
    }
}

macro_rules! deserialize_unit {
    ($unit:ty, $expected:expr) => {
        impl<'de> de::Deserialize<'de> for $unit {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(UnitVisitor(std::marker::PhantomData, $expected))
            }
        }
    };
}

deserialize_unit!(Size, SIZE_EXPECTED);
deserialize_unit!(Period, PERIOD_EXPECTED);
deserialize_unit!(Share, SHARE_EXPECTED);

#[cfg(test)]
mod tests;
