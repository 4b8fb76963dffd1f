//! The built web app, embedded in the binary: the files of `ui/app/dist` at the time of the build.
//!
//! `make` builds the app first. A plain `cargo build` without it embeds nothing, and the server then says how to build it.

/// A file of the web app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebFile {
    pub bytes: &'static [u8],
    pub content_type: &'static str,
    /// The path contains a hash of the contents, so that a browser may keep the file.
    pub is_immutable: bool,
}

/// URL path and contents of each file, sorted by path.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Paths of the app's views, which the app itself routes. The rest of the path is the id of what is shown.
const VIEWS: [&str; 7] = ["session", "change", "request", "turn", "history", "requests", "sessions"];

/// Directory of files whose names contain a hash.
const HASHED: &str = "/assets/";

/// Returns the page for the path of a view; `None` if the app was not built.
pub fn page() -> Option<WebFile> {
    file("/index.html")
}

/// `true` if the app shows a view at this URL path.
pub fn is_view(path: &str) -> bool {
    let mut segments = path.strip_prefix('/').unwrap_or(path).splitn(3, '/');
    match segments.next() {
        Some("") => path == "/",
        Some(view) => VIEWS.contains(&view),
        None => false,
    }
}

/// Returns the file at a URL path.
pub fn file(path: &str) -> Option<WebFile> {
    let at = FILES.binary_search_by_key(&path, |(known, _)| known).ok()?;
    let (path, bytes) = FILES[at];
    Some(WebFile { bytes, content_type: content_type(path), is_immutable: path.starts_with(HASHED) })
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json" | "map") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_views_are_routed_to_the_page() {
        for path in ["/", "/session/3f2a", "/change/12", "/request/7", "/history", "/sessions"] {
            assert!(is_view(path), "{path}");
        }
        for path in ["/sayso.v1.ReviewService/Status", "/p/secret", "/favicon.ico", "/wp-login.php", "", "//"] {
            assert!(!is_view(path), "{path}");
        }
    }

    #[test]
    fn files_are_sorted_for_binary_search() {
        assert!(FILES.is_sorted_by_key(|(path, _)| *path));
        assert!(FILES.iter().all(|(path, _)| file(path).is_some()));
        assert!(file("/../Cargo.toml").is_none());
    }
}
