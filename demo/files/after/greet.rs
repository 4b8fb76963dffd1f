use std::fmt;

/// Greets people.
pub struct Greeter {
    greeting: String,
}

impl Greeter {
    pub fn new(greeting: &str) -> Self {
        Self { greeting: greeting.to_owned() }
    }

    pub fn greet(&self, name: &str) -> String {
        format!("{}, {name}!", self.greeting)
    }

    pub fn greet_all(&self, names: &[&str]) -> Vec<String> {
        names.iter().map(|name| self.greet(name)).collect()
    }
}

impl fmt::Display for Greeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.greeting)
    }
}
