//! Names of tools for models.

use sayso_base::ContentHash;
use sayso_tools::EXTERNAL_PREFIX;

/// Maximum length of a name. The model APIs accept 64 characters: letters, digits, `_` and `-`.
const MAX_LENGTH: usize = 64;
/// Digits of the hash that distinguishes changed names.
const HASH_DIGITS: usize = 8;

/// Returns the name `mcp__SERVER__TOOL`. Characters that a model API does not accept become `_`. A changed or shortened name ends
/// in a hash of the original names, so two tools never share one.
pub fn tool_name(server: &str, tool: &str) -> String {
    let plain = format!("{EXTERNAL_PREFIX}{server}__{tool}");
    let is_accepted = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    if plain.len() <= MAX_LENGTH && plain.chars().all(is_accepted) && !server.contains("__") {
        return plain;
    }
    let accepted: String =
        plain.chars().map(|character| if is_accepted(character) { character } else { '_' }).collect();
    let kept = &accepted[..accepted.len().min(MAX_LENGTH - HASH_DIGITS - 1)];
    let hash = ContentHash::of(format!("{server}\0{tool}").as_bytes()).to_string();
    format!("{kept}_{}", &hash[..HASH_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_accepted_and_unique() {
        assert_eq!(tool_name("files", "write_file"), "mcp__files__write_file");
        let long = tool_name("files", &"x".repeat(100));
        let longer = tool_name("files", &"x".repeat(101));
        assert!(long.len() == 64 && longer.len() == 64 && long != longer, "{long} {longer}");
        let names =
            [tool_name("my files", "a"), tool_name("my.files", "a"), tool_name("my_files", "a"), tool_name("é", "ü")];
        for (index, name) in names.iter().enumerate() {
            let is_accepted = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
            assert!(name.chars().all(is_accepted) && !names[..index].contains(name), "{names:?}");
        }
    }
}
