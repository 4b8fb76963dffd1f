//! Names of ignored files that are captured all the same.

/// Pattern for a file name.
enum Name {
    Is(&'static str),
    StartsWith(&'static str),
    EndsWith(&'static str),
}

/// Settings and secrets that exist only on this machine. They are captured even if an ignore file names them, unless
/// their directory is ignored.
const PRECIOUS: [Name; 10] = [
    Name::Is(".env"),
    Name::StartsWith(".env."),
    Name::EndsWith(".env"),
    Name::Is(".envrc"),
    Name::Is(".flaskenv"),
    Name::Is(".dev.vars"),
    Name::Is("credentials.json"),
    Name::Is("local.properties"),
    Name::StartsWith("secrets."),
    Name::EndsWith(".tfvars"),
];

/// `true` for a name of such a file.
pub(super) fn is_precious(name: &str) -> bool {
    PRECIOUS.iter().any(|known| match known {
        Name::Is(text) => name == *text,
        Name::StartsWith(text) => name.starts_with(text),
        Name::EndsWith(text) => name.ends_with(text),
    })
}

#[cfg(test)]
mod tests {
    use super::is_precious;

    #[test]
    fn precious_names_match() {
        for name in [".env", ".env.local", "production.env", ".envrc", "secrets.yaml", "prod.tfvars"] {
            assert!(is_precious(name), "{name}");
        }
        for name in [".environment", "env", ".envs", "a.envx", "notsecrets.yaml", "secrets", "main.o"] {
            assert!(!is_precious(name), "{name}");
        }
    }
}
