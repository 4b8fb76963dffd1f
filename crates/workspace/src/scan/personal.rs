//! Files that git is told to ignore and that a person would miss most.

/// How a name is recognised.
enum Name {
    Is(&'static str),
    StartsWith(&'static str),
    EndsWith(&'static str),
}

/// Settings and secrets that exist on this machine only. They are captured though an ignore file names them, unless the directory
/// that they are in is ignored.
const PERSONAL: [Name; 10] = [
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

/// Whether nobody could bring a file of this name back.
pub(super) fn is_personal(name: &str) -> bool {
    PERSONAL.iter().any(|known| match known {
        Name::Is(text) => name == *text,
        Name::StartsWith(text) => name.starts_with(text),
        Name::EndsWith(text) => name.ends_with(text),
    })
}

#[cfg(test)]
mod tests {
    use super::is_personal;

    #[test]
    fn names_are_told() {
        for name in [".env", ".env.local", "production.env", ".envrc", "secrets.yaml", "prod.tfvars"] {
            assert!(is_personal(name), "{name}");
        }
        for name in [".environment", "env", ".envs", "a.envx", "notsecrets.yaml", "secrets", "main.o"] {
            assert!(!is_personal(name), "{name}");
        }
    }
}
