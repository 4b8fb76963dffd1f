//! Laws of the strict shell parser.

use sayso_shell::program::Variables;
use sayso_shell::{Certainty, Program};

/// Checks `Program::parse` and `Program::forecast` for any text.
pub fn program_laws(text: &str) {
    let program = match Program::parse(text) {
        Ok(program) => program,
        Err(error) => {
            assert!(text.get(error.span.clone()).is_some(), "the span lies inside the text: {text:?} {error:?}");
            assert!(!error.reason.is_empty(), "an error has a reason");
            return;
        }
    };
    assert_eq!(program.source, text, "the program keeps its text");
    for document in &program.documents {
        assert!(text.get(document.span.clone()).is_some(), "a here-document lies inside the text");
    }
    let known: Variables = [("x", "a b*"), ("HOME", "/h")].into_iter().collect();
    for variables in [Variables::default(), known] {
        let script = program.forecast(&variables);
        for (index, command) in script.commands.iter().enumerate() {
            assert!(command.shell < script.shells.len(), "every shell is known");
            assert!(command.fed_by.is_none_or(|first| first <= index), "what feeds a command stands before it");
            for word in command.words.iter().filter(|word| word.certainty == Certainty::Literal) {
                assert!(!word.text.contains('\0'), "no word holds a NUL");
            }
        }
    }
}
