use std::fmt;

/// Greets people.
pub struct Greeter {
    greeting: String,
}

impl Greeter {
    pub fn new(greeting: &str) -> Self {
        Self { greeting: greeting.to_string() }
    }

    pub fn greet(&self, name: &str) -> String {
        format!("{} {}", self.greeting, name)
    }
}

impl fmt::Display for Greeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.greeting)
    }
}
