//! The web app and the pages of a login, as responses.
//!
//! The files of the app hold no secrets, so that they need no credential. Every call that the app makes does.

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, SET_COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use sayso_web::WebFile;

use crate::login;
use crate::respond::{ResponseBody, bytes_body};
use crate::token::Token;

/// Own scripts and styles only, none inline; no other site may embed the pages. Images are also those that a person attaches.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
                      connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Headers of every page and file.
const HEADERS: [(&str, &str); 5] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
];

/// Returns the file or page for a request; `None` if the request is for a service.
pub(crate) fn find<B>(request: &Request<B>) -> Option<Response<ResponseBody>> {
    if *request.method() != Method::GET && *request.method() != Method::HEAD {
        return None;
    }
    let path = request.uri().path();
    if let Some(file) = sayso_web::file(path) {
        return Some(respond(file));
    }
    if !sayso_web::is_view(path) || !accepts_html(request.headers()) {
        return None;
    }
    Some(sayso_web::page().map_or_else(not_built, respond))
}

/// `true` for a page that a person opens, by a link or by its address. Its contents do not reach the site with the link.
pub(crate) fn is_navigation(headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|found| found == value);
    is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document")
}

/// `true` if a browser asks for a page.
pub(crate) fn accepts_html(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT).iter().filter_map(|accept| accept.to_str().ok()).any(|accept| accept.contains("text/html"))
}

/// Sets the login cookie and redirects, so that the link does not stay in the address bar.
pub(crate) fn logged_in(login: &Token, port: u16, next: Option<&str>) -> Response<ResponseBody> {
    let mut response = redirect(next);
    if let Ok(mut cookie) = HeaderValue::try_from(login::cookie(login, port)) {
        cookie.set_sensitive(true);
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// Redirects to a view of the app, or to its first one.
pub(crate) fn redirect(next: Option<&str>) -> Response<ResponseBody> {
    let mut response = with_headers(Response::new(bytes_body(Vec::new())));
    *response.status_mut() = StatusCode::SEE_OTHER;
    // A path such as `//host` would lead to another site.
    let next = next.filter(|next| next.starts_with('/') && sayso_web::is_view(next));
    let location = next.and_then(|next| HeaderValue::from_str(next).ok());
    response.headers_mut().insert(LOCATION, location.unwrap_or(HeaderValue::from_static("/")));
    response
}

/// The page for a login link that is used, expired or unknown.
pub(crate) fn login_failed() -> Response<ResponseBody> {
    let text = "<h1>This login link is used or expired</h1>\n<p>A link opens once, within five minutes. Run \
                <code>sayso open</code> in a terminal of your own for a new one.</p>";
    page(StatusCode::FORBIDDEN, "Login link expired", text)
}

fn not_built() -> Response<ResponseBody> {
    let text = "<h1>This build of sayso has no web app</h1>\n<p>Run <code>make</code> in its source, which builds the app \
                first, then start <code>sayso serve</code> again. Until then, <code>sayso review --follow</code> decides in \
                a terminal.</p>";
    page(StatusCode::NOT_IMPLEMENTED, "No web app", text)
}

/// A page without scripts and styles. `text` is HTML of this module.
fn page(status: StatusCode, title: &str, text: &str) -> Response<ResponseBody> {
    let html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} · sayso</title>\n<meta \
         name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\"></head>\n\
         <body><main>\n{text}\n</main></body></html>\n"
    );
    let mut response = with_headers(Response::new(bytes_body(html)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn respond(file: WebFile) -> Response<ResponseBody> {
    let mut response = with_headers(Response::new(bytes_body(file.bytes)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(file.content_type));
    let caching = if file.is_immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    response
}

fn with_headers(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}
