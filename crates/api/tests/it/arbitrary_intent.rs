//! Strategies for intents.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sayso_review::{Bytes, FileIntent, Intent, NewContent, Proposal};

use crate::arbitrary::{json, maybe, text};

/// Bytes in the variant that decoding produces: text if they are UTF-8.
pub(crate) fn bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![vec(any::<u8>(), 0..12).prop_map(Bytes::new), text().prop_map(|text| Bytes::new(text.into_bytes()))]
}

fn new_contents() -> impl Strategy<Value = NewContent> {
    (text(), text(), any::<bool>(), option::of(any::<bool>()), maybe()).prop_map(
        |(path, new_content, exact, executable, base_content)| NewContent {
            path,
            new_content,
            exact,
            executable,
            base_content,
        },
    )
}

pub(crate) fn file_intents() -> impl Strategy<Value = FileIntent> {
    prop_oneof![
        new_contents().prop_map(FileIntent::Create),
        new_contents().prop_map(FileIntent::Update),
        new_contents().prop_map(FileIntent::Write),
        (text(), text(), text(), any::<bool>()).prop_map(|(path, old_string, new_string, replace_all)| {
            FileIntent::Edit { path, old_string, new_string, replace_all }
        }),
        bytes().prop_map(|patch| FileIntent::Patch { patch }),
        text().prop_map(|path| FileIntent::Delete { path }),
        (text(), text()).prop_map(|(path, to)| FileIntent::Rename { path, to }),
    ]
}

pub(crate) fn proposals() -> impl Strategy<Value = Proposal> {
    vec(file_intents(), 0..3).prop_map(|changes| Proposal { changes })
}

/// Intents that the protocol can encode: all except requests to models.
pub(crate) fn intents() -> impl Strategy<Value = Intent> {
    prop_oneof![
        proposals().prop_map(Intent::ChangeFiles),
        (text(), maybe(), maybe()).prop_map(|(command, directory, description)| Intent::RunCommand {
            command,
            directory,
            description
        }),
        (text(), json()).prop_map(|(name, arguments)| Intent::CallTool { name, arguments }),
    ]
}
