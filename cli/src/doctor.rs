//! stub
pub fn run(_: &crate::args::doctor::Args) -> anyhow::Result<std::process::ExitCode> {
    anyhow::bail!("")
}
