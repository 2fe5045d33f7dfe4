//! Progress of long work: a bar on a terminal, nothing elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::control::protocol::Progress;

/// A bar that follows progress; invisible where standard error is no terminal.
pub struct Bar(Option<ProgressBar>);

impl Bar {
    /// A bar for work that is called `what`.
    pub fn new(what: &str) -> Self {
        if !stderr().is_terminal() {
            return Bar(None);
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let template =
            "{prefix} {bar:30} {binary_bytes} of {binary_total_bytes}, {msg} {binary_bytes_per_sec}";
        // The template is a constant; a bar of the default style would do as well.
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar(Some(bar))
    }

    /// Shows how far it is.
    pub fn show(&self, now: &Progress) {
        let Some(bar) = &self.0 else { return };
        bar.set_length(now.bytes_total);
        bar.set_position(now.bytes_done);
        bar.set_message(format!("{} of {} files", now.files_done, now.files_total));
    }
}

impl Drop for Bar {
    /// Leaves no trace on the terminal, however the work ended.
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
