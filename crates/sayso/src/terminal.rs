//! Capabilities of the terminal.

use std::fs::File;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{Ansi256Color, Color, RgbColor};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use sayso_review::{Surface, SurfaceKind};

use crate::cli::{ThemeChoice, When};

/// `true` while another program has the terminal.
static LENT: AtomicBool = AtomicBool::new(false);

/// Lends the terminal to another program, such as an editor. Restores its modes afterwards, however the program ended.
pub(crate) fn lend<T>(run: impl FnOnce() -> T) -> T {
    let terminal = File::open("/dev/tty").ok();
    let modes = terminal.as_ref().and_then(|terminal| tcgetattr(terminal).ok());
    LENT.store(true, Ordering::Release);
    let result = run();
    LENT.store(false, Ordering::Release);
    if let (Some(terminal), Some(modes)) = (&terminal, &modes) {
        let _ = tcsetattr(terminal, OptionalActions::Drain, modes);
    }
    result
}

/// `true` while another program has the terminal. Ctrl-C is for that program.
pub(crate) fn is_lent() -> bool {
    LENT.load(Ordering::Acquire)
}

/// The surface of this process, named by the terminal in which answers are typed, such as `pts/3`.
pub(crate) fn surface() -> Surface {
    let input = if std::io::stdin().is_terminal() { std::fs::read_link("/proc/self/fd/0").ok() } else { None };
    let name = input.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    Surface::new(SurfaceKind::CommandLine, name.strip_prefix("/dev/").unwrap_or_default())
}

/// Capabilities of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// `true` if standard output is a terminal.
    pub(crate) interactive: bool,
    pub(crate) palette: Palette,
    pub(crate) background: Background,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Palette {
    None,
    Indexed,
    True,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Background {
    Dark,
    Light,
}

impl Terminal {
    pub(crate) fn detect(when: When, theme: ThemeChoice) -> Self {
        let interactive = std::io::stdout().is_terminal();
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let colours = match when {
            When::Always => true,
            When::Never => false,
            When::Auto => interactive && variable("NO_COLOR").is_empty() && variable("TERM") != "dumb",
        };
        let palette = match variable("COLORTERM").as_str() {
            _ if !colours => Palette::None,
            "truecolor" | "24bit" => Palette::True,
            _ => Palette::Indexed,
        };
        let background = match theme {
            ThemeChoice::Dark => Background::Dark,
            ThemeChoice::Light => Background::Light,
            ThemeChoice::Auto => background(&variable("COLORFGBG")),
        };
        Self { interactive, palette, background }
    }

    /// `true` to draw for a person, `false` to write for a program.
    pub(crate) fn draws(self) -> bool {
        self.interactive || self.palette != Palette::None
    }

    /// Returns the terminal's nearest colour.
    pub(crate) fn colour(self, RgbColor(red, green, blue): RgbColor) -> Color {
        if self.palette == Palette::True {
            return RgbColor(red, green, blue).into();
        }
        // The 6 × 6 × 6 cube of the 256 colours has levels 0, 95, 135, 175, 215 and 255.
        let level = |value: u8| {
            if value < 48 {
                0
            } else if value < 115 {
                1
            } else {
                (value - 35) / 40
            }
        };
        Ansi256Color(16 + 36 * level(red) + 6 * level(green) + level(blue)).into()
    }
}

/// Reads COLORFGBG: `foreground;background`, as numbers of the 16 colours.
fn background(colorfgbg: &str) -> Background {
    match colorfgbg.rsplit(';').next().and_then(|number| number.parse::<u8>().ok()) {
        Some(7 | 9..=15) => Background::Light,
        _ => Background::Dark,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colorfgbg_tells_the_background() {
        assert_eq!(background("15;0"), Background::Dark);
        assert_eq!(background("0;15"), Background::Light);
        assert_eq!(background("0;default;7"), Background::Light);
        assert_eq!(background(""), Background::Dark);
    }

    #[test]
    fn true_colour_maps_to_nearest_of_256() {
        let terminal = Terminal { interactive: true, palette: Palette::Indexed, background: Background::Dark };
        assert_eq!(terminal.colour(RgbColor(0, 0, 0)), Ansi256Color(16).into());
        assert_eq!(terminal.colour(RgbColor(255, 255, 255)), Ansi256Color(231).into());
        assert_eq!(terminal.colour(RgbColor(95, 0, 0)), Ansi256Color(52).into());
    }
}
