//! What is a size, a time, a share, and what is not.

use super::*;

fn size(text: &str) -> Option<u64> {
    text.parse().ok().map(|Size(bytes)| bytes)
}

fn period_ms(text: &str) -> Option<u128> {
    text.parse().ok().map(|Period(period)| period.as_millis())
}

fn share(text: &str) -> Option<f64> {
    text.parse().ok().map(|Share(share)| share)
}

#[test]
fn sizes() {
    assert_eq!(size("0"), Some(0));
    assert_eq!(size("512"), Some(512));
    assert_eq!(size("50G"), Some(50 << 30));
    assert_eq!(size("50g"), Some(50 << 30));
    assert_eq!(size("50 GiB"), Some(50 << 30));
    assert_eq!(size("50GB"), Some(50 << 30));
    assert_eq!(size("1.5K"), Some(1536));
    assert_eq!(size("15P"), Some(15 << 50));
    for wrong in
        ["", "G", "-1", "+1", "1e9", "1 000", "5X", "1.", ".5", "16384P", "0x10", "inf", "1.2.3G", "five"]
    {
        assert_eq!(size(wrong), None, "{wrong}");
    }
}

#[test]
fn times() {
    assert_eq!(period_ms("1"), Some(1000));
    assert_eq!(period_ms("0"), Some(0));
    assert_eq!(period_ms("500ms"), Some(500));
    assert_eq!(period_ms("1.5s"), Some(1500));
    assert_eq!(period_ms("2m"), Some(120_000));
    assert_eq!(period_ms("1d"), Some(86_400_000));
    assert_eq!("inf".parse(), Ok(Period(Duration::MAX)));
    for wrong in ["", "s", "-1s", "1 week", "1M", "infinite", "1s2", "99999999999999999999s"] {
        assert_eq!(period_ms(wrong), None, "{wrong}");
    }
}

#[test]
fn shares() {
    assert_eq!(share("5%"), Some(0.05));
    assert_eq!(share("0.95"), Some(0.95));
    assert_eq!(share("1"), Some(1.0));
    assert_eq!(share("0"), Some(0.0));
    for wrong in ["", "101%", "1.01", "-0.1", "95", "5 percent", "NaN"] {
        assert_eq!(share(wrong), None, "{wrong}");
    }
}

#[test]
fn a_wrong_one_says_what_would_be_right() {
    let message = "50X".parse::<Size>().unwrap_err().to_string();
    assert!(message.starts_with("`50X` is not a size: write 512, 64K"), "{message}");
}

#[test]
fn what_is_shown_can_be_read_by_people_and_by_us() {
    assert_eq!(Size(50 << 30).to_string(), "50G");
    assert_eq!(Size(1536 << 20).to_string(), "1.5G");
    assert_eq!(Size(1000).to_string(), "1000");
    assert_eq!(Size(0).to_string(), "0");
    assert_eq!(Period(Duration::from_millis(1500)).to_string(), "1500ms");
    assert_eq!(Period(Duration::from_secs(120)).to_string(), "2m");
    assert_eq!(Period(Duration::ZERO).to_string(), "0s");
    assert_eq!(Period(Duration::MAX).to_string(), "inf");
    assert_eq!(Share(0.05).to_string(), "5%");
    assert_eq!(Share(0.125).to_string(), "12.5%");
    assert_eq!(format!("{:>6}", Size(1 << 20)), "    1M");
}
