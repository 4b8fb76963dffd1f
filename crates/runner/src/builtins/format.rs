//! Directives of `printf`: `%-5.2f`.

/// A directive with its flags.
#[allow(clippy::struct_excessive_bools, reason = "the flags of a directive are independent")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Directive {
    pub(super) is_left: bool,
    is_zero: bool,
    has_plus: bool,
    has_space: bool,
    is_alternate: bool,
    pub(super) width: usize,
    pub(super) precision: Option<usize>,
    pub(super) takes_width: bool,
    pub(super) takes_precision: bool,
    pub(super) conversion: u8,
}

/// Reads the directive at the beginning of a text, with its length.
pub(super) fn parse(text: &[u8]) -> Option<(Directive, usize)> {
    let mut directive = Directive::default();
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'-' => directive.is_left = true,
            b'0' => directive.is_zero = true,
            b'+' => directive.has_plus = true,
            b' ' => directive.has_space = true,
            b'#' => directive.is_alternate = true,
            _ => break,
        }
        at += 1;
    }
    if text.get(at) == Some(&b'*') {
        directive.takes_width = true;
        at += 1;
    } else {
        directive.width = number(text, &mut at);
    }
    if text.get(at) == Some(&b'.') {
        at += 1;
        if text.get(at) == Some(&b'*') {
            directive.takes_precision = true;
            at += 1;
        } else {
            directive.precision = Some(number(text, &mut at));
        }
    }
    directive.conversion = *text.get(at)?;
    b"scbqdiuoxXfFeEgG".contains(&directive.conversion).then_some((directive, at + 1))
}

fn number(text: &[u8], at: &mut usize) -> usize {
    let mut number: usize = 0;
    while let Some(digit) = text.get(*at).filter(|byte| byte.is_ascii_digit()) {
        number = (number * 10 + usize::from(digit - b'0')).min(1 << 20);
        *at += 1;
    }
    number
}

impl Directive {
    /// Pads text, which the precision shortens.
    pub(super) fn text(&self, value: &[u8]) -> Vec<u8> {
        let length = self.precision.map_or(value.len(), |precision| precision.min(value.len()));
        self.padded(value[..length].to_vec())
    }

    fn padded(&self, value: Vec<u8>) -> Vec<u8> {
        let blanks = vec![b' '; self.width.saturating_sub(value.len())];
        if self.is_left { [value, blanks].concat() } else { [blanks, value].concat() }
    }

    /// Pads a number with zeros behind its sign if the flags say so.
    fn number(&self, sign: &str, digits: &str, allows_zeros: bool) -> Vec<u8> {
        let length = sign.len() + digits.len();
        let zeros = if self.is_zero && !self.is_left && allows_zeros { self.width.saturating_sub(length) } else { 0 };
        self.padded([sign.as_bytes(), &vec![b'0'; zeros], digits.as_bytes()].concat())
    }

    fn digits(&self, digits: &str) -> String {
        let precision = self.precision.unwrap_or(1);
        if precision == 0 && digits == "0" { String::new() } else { format!("{digits:0>precision$}") }
    }

    pub(super) fn signed(&self, value: i64) -> Vec<u8> {
        let sign = self.sign(value < 0);
        let digits = self.digits(&value.unsigned_abs().to_string());
        self.number(sign, &digits, self.precision.is_none())
    }

    fn sign(&self, is_negative: bool) -> &'static str {
        match (is_negative, self.has_plus, self.has_space) {
            (true, _, _) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        }
    }

    pub(super) fn unsigned(&self, value: u64) -> Vec<u8> {
        let (prefix, digits) = match self.conversion {
            b'o' => ("", format!("{}{value:o}", if self.is_alternate && value != 0 { "0" } else { "" })),
            b'x' => (if self.is_alternate && value != 0 { "0x" } else { "" }, format!("{value:x}")),
            b'X' => (if self.is_alternate && value != 0 { "0X" } else { "" }, format!("{value:X}")),
            _ => ("", value.to_string()),
        };
        self.number(prefix, &self.digits(&digits), self.precision.is_none())
    }

    pub(super) fn float(&self, value: f64) -> Vec<u8> {
        let sign = self.sign(value.is_sign_negative());
        let size = value.abs();
        let precision = self.precision.unwrap_or(6);
        let digits = match self.conversion {
            _ if !size.is_finite() => size.to_string().to_lowercase(),
            b'f' | b'F' => format!("{size:.precision$}"),
            b'e' | b'E' => exponential(size, precision),
            _ => general(size, precision.max(1)),
        };
        let digits = if self.conversion.is_ascii_uppercase() { digits.to_uppercase() } else { digits };
        self.number(sign, &digits, size.is_finite())
    }
}

/// `1.5e+03`, as C writes it.
fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// The shorter of both notations without zeros at its end.
fn general(value: f64, precision: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = exponential(value, precision - 1);
    let exponent: isize = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let trim = |text: &str| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() }
    };
    if exponent < -4 || exponent >= precision.cast_signed() {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
        return format!("{}e{exponent}", trim(mantissa));
    }
    let decimals = usize::try_from(precision.cast_signed() - 1 - exponent).unwrap_or(0);
    trim(&format!("{value:.decimals$}"))
}

/// The value of `'c`, the number of a character.
pub(super) fn character_value(value: &[u8]) -> Option<i64> {
    let [b'\'' | b'"', rest @ ..] = value else { return None };
    let text = String::from_utf8_lossy(rest);
    Some(text.chars().next().map_or(0, |character| i64::from(u32::from(character))))
}

/// Reads a number as C does. `false` if other text follows it.
pub(super) fn integer(value: &[u8]) -> (i64, bool) {
    if let Some(number) = character_value(value) {
        return (number, true);
    }
    let text = String::from_utf8_lossy(value);
    let text = text.trim_start();
    if text.is_empty() {
        return (0, value.is_empty());
    }
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (if text.starts_with('-') { -1 } else { 1 }, digits),
        None => (1, text),
    };
    let (base, digits) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        None => (10, digits),
    };
    let length = digits.bytes().take_while(|byte| char::from(*byte).is_digit(base)).count();
    let number = i128::from_str_radix(&digits[..length], base).unwrap_or(if length > 0 { i128::MAX } else { 0 });
    let number = (number.saturating_mul(sign)).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
    (number, length > 0 && length == digits.len())
}
