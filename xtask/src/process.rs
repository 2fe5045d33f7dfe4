//! Programs run as a person would see them: the command line is shown first, and a failure names it.

use std::process::{Command, Stdio};

use anyhow::Context as _;

/// Runs `command` with our output and without input; an exit other than 0 is an error.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let line = line(command);
    eprintln!("+ {line}");
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot start `{line}`"))?;
    anyhow::ensure!(status.success(), "`{line}`: {status}");
    Ok(())
}

/// Runs `command` in silence and gives what it printed; an exit other than 0 is an error that holds its stderr.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let line = line(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{line}`"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "`{line}`: {}: {}", output.status, stderr.trim());
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed what is not UTF-8"))
}

/// The command line, to read: the program without its folder, then its arguments.
fn line(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{line, output, run};
    use std::process::Command;

    #[test]
    fn a_failure_names_the_command_and_what_it_said() {
        let error = output(Command::new("/bin/sh").args(["-c", "echo no space >&2; exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c echo no space >&2; exit 3`: exit status: 3: no space");
        assert!(run(Command::new("/bin/sh").args(["-c", "exit 1"])).is_err());
        assert!(run(&mut Command::new("/no/such/program")).is_err());
    }

    #[test]
    fn output_is_what_was_printed_and_there_is_no_input() {
        assert_eq!(output(Command::new("/bin/sh").args(["-c", "cat; echo end"])).unwrap(), "end\n");
        assert_eq!(line(Command::new("/usr/bin/env").arg("a")), "env a");
    }
}
