//! Environment variables: the one table of them. Takes the environment; gives typed values and warnings; must not know
//! flags. Where a flag and a variable say different things, the flag wins.

use crate::exit::Failure;
use minfer::SimdLevel;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::str::FromStr;

/// A variable that minfer reads.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Accepted values.
    pub accepts: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Which commands look at it.
    pub used_by: UsedBy,
    set: fn(&mut Environment, &OsStr) -> Option<()>,
}

/// Commands that look at a variable; each group holds those after it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub enum UsedBy {
    /// Those that compute or plan, and `doctor`.
    Machine,
    /// Those that plan.
    Plan,
    /// `run` and `eval`.
    Watch,
}

/// What the environment asks for.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Environment {
    pub threads: Option<u64>,
    pub simd: Option<SimdLevel>,
    pub no_fuse_qkv: bool,
    pub no_fuse_ffn: bool,
    pub no_fuse_residual: bool,
    pub no_fuse_quantize: bool,
    pub trace: Option<PathBuf>,
    pub graph_dump: Option<PathBuf>,
}

/// Every variable.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "MINFER_THREADS",
        used_by: UsedBy::Machine,
        accepts: "1 to 1024",
        meaning: "as --threads",
        set: |env, value| put(&mut env.threads, parsed(value).map(Some)),
    },
    Variable {
        name: "MINFER_SIMD",
        used_by: UsedBy::Machine,
        accepts: "scalar, avx2, avxvnni, avx512, neon or neondot",
        meaning: "vector instructions of the cpu backend, for tests; the default is the best there are",
        set: |env, value| put(&mut env.simd, parsed(value).map(Some)),
    },
    Variable {
        name: "MINFER_NO_FUSE_QKV",
        used_by: UsedBy::Plan,
        accepts: "1 or 0",
        meaning: "as --no-fuse-qkv",
        set: |env, value| put(&mut env.no_fuse_qkv, switch(value)),
    },
    Variable {
        name: "MINFER_NO_FUSE_FFN",
        used_by: UsedBy::Plan,
        accepts: "1 or 0",
        meaning: "as --no-fuse-ffn",
        set: |env, value| put(&mut env.no_fuse_ffn, switch(value)),
    },
    Variable {
        name: "MINFER_NO_FUSE_RESIDUAL",
        used_by: UsedBy::Plan,
        accepts: "1 or 0",
        meaning: "as --no-fuse-residual",
        set: |env, value| put(&mut env.no_fuse_residual, switch(value)),
    },
    Variable {
        name: "MINFER_NO_FUSE_QUANTIZE",
        used_by: UsedBy::Plan,
        accepts: "1 or 0",
        meaning: "as --no-fuse-quantize",
        set: |env, value| put(&mut env.no_fuse_quantize, switch(value)),
    },
    Variable {
        name: "MINFER_TRACE",
        used_by: UsedBy::Watch,
        accepts: "a file",
        meaning: "as --trace, for run and eval",
        set: |env, value| put(&mut env.trace, Some(Some(value.into()))),
    },
    Variable {
        name: "MINFER_GRAPH_DUMP",
        used_by: UsedBy::Watch,
        accepts: "a folder",
        meaning: "run and eval write the logits of every batch and, at the end, the KV regions there",
        set: |env, value| put(&mut env.graph_dump, Some(Some(value.into()))),
    },
];

/// Read by the project's own tasks and tests, not by this program.
const OF_TASKS: [&str; 3] = ["MINFER_MODELS", "MINFER_CACHE", "MINFER_BLESS"];

const PREFIX: &str = "MINFER_";

/// The environment's wishes, and what to warn about. A value that a variable does not accept is an error; an empty value
/// is the same as none.
pub fn read(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Result<(Environment, Vec<String>), Failure> {
    let mut environment = Environment::default();
    let mut warnings = Vec::new();
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        let known = VARIABLES.iter().find(|variable| variable.name == name);
        match known {
            Some(_) if value.is_empty() => {}
            Some(variable) if (variable.set)(&mut environment, &value).is_some() => {}
            Some(variable) => {
                let message = format!("{name} is `{}`, expected {}", value.display(), variable.accepts);
                return Err(Failure::new(message).hint(format!("change it or `unset {name}`")));
            }
            None if OF_TASKS.contains(&name) => {}
            None => warnings.push(format!("{name} is set, but there is no such variable; see `minfer --help`")),
        }
    }
    warnings.sort();
    Ok((environment, warnings))
}

/// The table as it stands in `--help` of a command of this group.
pub fn help(group: UsedBy) -> String {
    let mut text = String::from("Environment variables (a flag wins over its variable):\n");
    for Variable { name, accepts, meaning, .. } in VARIABLES.iter().filter(|variable| variable.used_by <= group) {
        text.push_str(&format!("  {name:<24} {meaning} ({accepts})\n"));
    }
    text.push_str("\nExit codes: 0 done, 1 a negative answer, 2 failure.");
    text
}

/// Keeps a value, if there is one.
fn put<T>(slot: &mut T, value: Option<T>) -> Option<()> {
    *slot = value?;
    Some(())
}

fn parsed<T: FromStr>(value: &OsStr) -> Option<T> {
    value.to_str()?.parse().ok()
}

fn switch(value: &OsStr) -> Option<bool> {
    match value.to_str()? {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(name: &str, value: &str) -> Result<(Environment, Vec<String>), Failure> {
        read([(name.into(), value.into())])
    }

    #[test]
    fn known_variables_are_read() {
        let (environment, warnings) = read([
            ("MINFER_NO_FUSE_QKV".into(), "1".into()),
            ("MINFER_NO_FUSE_FFN".into(), "0".into()),
            ("MINFER_THREADS".into(), "3".into()),
            ("MINFER_SIMD".into(), "scalar".into()),
            ("MINFER_TRACE".into(), "".into()),
            ("PATH".into(), "/bin".into()),
        ])
        .unwrap();
        let expected = Environment {
            no_fuse_qkv: true,
            threads: Some(3),
            simd: Some(SimdLevel::Scalar),
            ..Environment::default()
        };
        assert_eq!((environment, warnings), (expected, Vec::new()));
    }

    #[test]
    fn unknown_values_are_refused() {
        for (name, value) in [
            ("MINFER_NO_FUSE_QKV", "yes"),
            ("MINFER_NO_FUSE_FFN", "true"),
            ("MINFER_THREADS", "many"),
            ("MINFER_THREADS", "-1"),
            ("MINFER_SIMD", "sse9"),
        ] {
            let message = read_one(name, value).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains(value), "{message}");
        }
    }

    #[test]
    fn unknown_variables_are_a_warning_but_not_those_of_tasks() {
        let (environment, warnings) = read_one("MINFER_NO_FUSE_QVK", "1").unwrap();
        assert_eq!(environment, Environment::default());
        assert!(warnings[0].contains("MINFER_NO_FUSE_QVK"));
        for name in OF_TASKS {
            assert!(read_one(name, "x").unwrap().1.is_empty());
        }
    }

    #[test]
    fn the_help_names_every_variable_where_it_is_used() {
        let all = help(UsedBy::Watch);
        assert!(VARIABLES.iter().all(|variable| all.contains(variable.name) && all.contains(variable.accepts)));
        let (plan, machine) = (help(UsedBy::Plan), help(UsedBy::Machine));
        assert!(plan.contains("MINFER_NO_FUSE_QKV") && !plan.contains("MINFER_TRACE"), "{plan}");
        assert!(machine.contains("MINFER_SIMD") && !machine.contains("MINFER_NO_FUSE_QKV"), "{machine}");
    }
}
