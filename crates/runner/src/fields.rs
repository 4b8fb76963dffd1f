//! Words while they are expanded: bytes, and which of them can act as pattern signs.

/// One word after splitting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) bytes: Vec<u8>,
    /// For each byte: `true` if it is not quoted.
    pub(crate) active: Vec<bool>,
    /// `true` if the word exists even when it is empty.
    exists: bool,
}

impl Field {
    pub(crate) fn push(&mut self, bytes: &[u8], is_active: bool) {
        self.bytes.extend_from_slice(bytes);
        self.active.resize(self.bytes.len(), is_active);
    }

    /// `true` if it holds a sign that stands for characters of file names.
    pub(crate) fn is_pattern(&self) -> bool {
        let active = |at: usize| self.active[at];
        self.bytes.iter().enumerate().any(|(at, byte)| match byte {
            b'*' | b'?' => active(at),
            b'[' => active(at) && self.bytes[at + 1..].contains(&b']'),
            _ => false,
        })
    }

    /// Divides it at slashes.
    pub(crate) fn components(&self) -> Vec<Self> {
        let mut components = vec![Self::default()];
        for (byte, is_active) in self.bytes.iter().zip(&self.active) {
            if *byte == b'/' {
                components.push(Self::default());
            } else if let Some(last) = components.last_mut() {
                last.push(&[*byte], *is_active);
            }
        }
        components
    }
}

/// The words that one word becomes, while its parts are added.
#[derive(Default)]
pub(crate) struct Fields {
    done: Vec<Field>,
    current: Field,
}

impl Fields {
    /// Adds text that is neither split nor matched.
    pub(crate) fn quoted(&mut self, bytes: &[u8]) {
        self.current.exists = true;
        self.current.push(bytes, false);
    }

    /// Adds unquoted text of the script itself, which is not split.
    pub(crate) fn plain(&mut self, bytes: &[u8]) {
        self.current.exists |= !bytes.is_empty();
        self.current.push(bytes, true);
    }

    /// Adds the value of an unquoted expansion, which blanks divide.
    pub(crate) fn split(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if matches!(byte, b' ' | b'\t' | b'\n') {
                self.end();
            } else {
                self.current.exists = true;
                self.current.push(&[*byte], true);
            }
        }
    }

    fn end(&mut self) {
        let field = std::mem::take(&mut self.current);
        if field.exists {
            self.done.push(field);
        }
    }

    pub(crate) fn finish(mut self) -> Vec<Field> {
        self.end();
        self.done
    }
}
