//! The tables that rules read, from `house.toml`.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Deserialize;

/// All tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct House {
    /// By the name of the storey, which is its folder at the root.
    pub storey: BTreeMap<String, Storey>,
    /// Where `unsafe` may be.
    #[serde(rename = "unsafe")]
    pub unsafe_code: UnsafeCode,
    /// What is had from one crate only.
    pub door: Door,
    /// How large things may be.
    pub size: Size,
}

/// What the crates of a storey may use: names of storeys and of crates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storey {
    /// In `[dependencies]` and `[build-dependencies]`.
    pub uses: Vec<String>,
    /// In `[dev-dependencies]`, beyond `uses`.
    #[serde(default)]
    pub tests_use: Vec<String>,
}

/// Where `unsafe` may be.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnsafeCode {
    /// Paths from the root.
    pub folders: Vec<String>,
}

/// What is had from one crate only.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Door {
    /// Whose product code is asked.
    pub storeys: Vec<String>,
    /// Paths, whole or from their end, that go past the door.
    pub closed: Vec<String>,
    /// Whole paths that do not, though they lie under a closed one.
    pub open: Vec<String>,
}

/// How large things may be.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Lines of a file before its tests.
    pub file_lines: usize,
    /// Lines of a function, from its `fn` to its closing brace.
    pub function_lines: usize,
}

impl House {
    /// The tables as they were when this program was built, which is now: `cargo run` builds it first.
    pub fn load() -> anyhow::Result<House> {
        toml::from_str(include_str!("house.toml")).context("xtask/src/tidy/house.toml")
    }
}

#[cfg(test)]
mod tests {
    use super::House;

    #[test]
    fn every_name_in_the_table_is_a_storey_or_a_crate() {
        let house = House::load().unwrap();
        let all = house.storey.values().flat_map(|storey| storey.uses.iter().chain(&storey.tests_use));
        for name in all {
            assert!(house.storey.contains_key(name) || name.starts_with("hither-"), "{name}");
        }
    }

    #[test]
    fn the_core_uses_nothing_and_layers_are_handed_what_is_below_them() {
        let house = House::load().unwrap();
        assert!(house.storey["core"].uses.is_empty() && house.storey["core"].tests_use.is_empty());
        assert_eq!(house.storey["layers"].uses, ["core"]);
        assert_eq!(house.unsafe_code.folders, ["core/sys"]);
    }
}
