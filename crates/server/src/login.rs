//! Logins: credentials for verdicts over TCP. Created on the verdict socket, and kept in memory only.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use http::header::COOKIE;

use crate::host::now;
use crate::respond::LOGIN_PATH;
use crate::token::Token;

/// Limit on valid logins. A new one replaces the oldest.
const MAX_LOGINS: usize = 64;
/// Limit on redeemable links. A new one replaces the oldest.
const MAX_LINKS: usize = 16;
pub(crate) const LINK_LIFETIME: Duration = Duration::from_mins(5);
/// Followed by the port: browsers send a cookie to all ports of a host, so engines need names of their own.
const COOKIE_PREFIX: &str = "sayso-login-";

/// Logins of an engine. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Logins(Arc<Mutex<Issued>>);

#[derive(Debug, Default)]
struct Issued {
    logins: VecDeque<Token>,
    links: VecDeque<Link>,
}

#[derive(Debug)]
struct Link {
    code: Token,
    /// In milliseconds since 1970.
    expires: i64,
}

impl Logins {
    /// Creates a login, which is valid until the engine stops.
    pub fn create(&self) -> io::Result<Token> {
        let login = Token::random()?;
        push(&mut self.issued().logins, login.clone(), MAX_LOGINS);
        Ok(login)
    }

    /// Creates the code of a login link. Redeemable once, within [`LINK_LIFETIME`].
    fn create_link(&self) -> io::Result<Token> {
        let code = Token::random()?;
        let expires = now().saturating_add(i64::try_from(LINK_LIFETIME.as_millis()).unwrap_or(i64::MAX));
        push(&mut self.issued().links, Link { code: code.clone(), expires }, MAX_LINKS);
        Ok(code)
    }

    /// Creates a login link to the server at this address.
    pub(crate) fn create_link_to(&self, url: &str) -> io::Result<String> {
        Ok(format!("{}{LOGIN_PATH}{}", url.trim_end_matches('/'), self.create_link()?.reveal()))
    }

    /// Exchanges the code of a link for a login. `None` if it is used, expired or unknown.
    pub(crate) fn redeem(&self, code: &[u8]) -> io::Result<Option<Token>> {
        let redeemed = {
            let mut issued = self.issued();
            let now = now();
            issued.links.retain(|link| link.expires > now);
            let found = issued.links.iter().position(|link| link.code.is(code));
            found.and_then(|at| issued.links.remove(at))
        };
        redeemed.map(|_| self.create()).transpose()
    }

    /// `true` if `shown` is a valid login.
    pub(crate) fn accepts(&self, shown: &[u8]) -> bool {
        self.issued().logins.iter().any(|login| login.is(shown))
    }

    /// `true` if a cookie contains a valid login.
    pub(crate) fn accepts_cookie(&self, headers: &HeaderMap, port: u16) -> bool {
        let is_ours = |name: &str| name.strip_prefix(COOKIE_PREFIX).is_some_and(|of| of.parse() == Ok(port));
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| is_ours(name) && self.accepts(value.as_bytes()))
    }

    fn issued(&self) -> MutexGuard<'_, Issued> {
        // Each update is a single push or removal, so poisoned lists are intact.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Value of `Set-Cookie`. Scripts cannot read the cookie, and requests from other sites do not send it.
pub(crate) fn cookie(login: &Token, port: u16) -> String {
    format!("{COOKIE_PREFIX}{port}={}; Path=/; HttpOnly; SameSite=Strict", login.reveal())
}

fn push<T>(list: &mut VecDeque<T>, new: T, limit: usize) {
    if list.len() == limit {
        list.pop_front();
    }
    list.push_back(new);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    #[test]
    fn login_link_is_redeemable_once() {
        let logins = Logins::default();
        let code = logins.create_link().unwrap();
        assert!(!logins.accepts(code.reveal().as_bytes()), "a link is not a login");
        let login = logins.redeem(code.reveal().as_bytes()).unwrap().unwrap();
        assert!(logins.accepts(login.reveal().as_bytes()));
        assert!(logins.redeem(code.reveal().as_bytes()).unwrap().is_none());
        assert!(logins.redeem(b"").unwrap().is_none());
    }

    #[test]
    fn expired_login_link_is_rejected() {
        let logins = Logins::default();
        let code = logins.create_link().unwrap();
        logins.issued().links[0].expires = now() - 1;
        assert!(logins.redeem(code.reveal().as_bytes()).unwrap().is_none());
    }

    #[test]
    fn login_cookie_is_found_among_others() {
        let logins = Logins::default();
        let login = logins.create().unwrap();
        let pair = cookie(&login, 7777).split(';').next().unwrap().to_owned();
        let accepts = |cookies: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, cookies.parse().unwrap());
            logins.accepts_cookie(&headers, 7777)
        };
        assert!(accepts(&format!("theme=dark; {pair}")));
        assert!(!accepts("theme=dark; sayso-login-7777=0000"));
        assert!(!accepts("sayso-login-7777"));
        assert!(!accepts(&pair.replace("7777", "7778")), "the cookie of another engine on this machine");
    }

    #[test]
    fn new_login_replaces_oldest_at_limit() {
        let logins = Logins::default();
        let first = logins.create().unwrap();
        for _ in 0..MAX_LOGINS {
            logins.create().unwrap();
        }
        assert!(!logins.accepts(first.reveal().as_bytes()));
    }
}
