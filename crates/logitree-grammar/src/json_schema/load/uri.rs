//! Resolves URI references against a base (RFC 3986, section 5).

/// The parts of a reference (RFC 3986, appendix B).
#[derive(Debug, Clone, Copy)]
struct UriParts<'t> {
    scheme: Option<&'t str>,
    authority: Option<&'t str>,
    path: &'t str,
    query: Option<&'t str>,
}

/// A reference and its fragment, which is empty if absent.
pub(super) fn split(reference: &str) -> (&str, &str) {
    reference.split_once('#').unwrap_or((reference, ""))
}

/// The reference (without fragment) as seen from `base`. A base without scheme is fine: what is relative stays so.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    let reference = parts(split(reference).0);
    let base = parts(split(base).0);
    let mut out = reference;
    let mut path = clean(reference.path);
    if reference.scheme.is_none() {
        out.scheme = base.scheme;
        if reference.authority.is_none() {
            out.authority = base.authority;
            if reference.path.is_empty() {
                path = base.path.into();
                out.query = reference.query.or(base.query);
            } else if !reference.path.starts_with('/') {
                path = clean(&merge(&base, reference.path));
            }
        }
    }
    let mut uri = String::new();
    if let Some(scheme) = out.scheme {
        uri = format!("{scheme}:");
    }
    if let Some(authority) = out.authority {
        uri = format!("{uri}//{authority}");
    }
    uri.push_str(&path);
    if let Some(query) = out.query {
        uri = format!("{uri}?{query}");
    }
    uri
}

/// A fragment with its percent escapes undone; `None` where that is no text.
pub(super) fn decode(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

fn parts(reference: &str) -> UriParts<'_> {
    let mut rest = reference;
    let mut scheme = None;
    if let Some(colon) = rest.find([':', '/', '?']).filter(|&at| rest.as_bytes()[at] == b':') {
        let name = &rest[..colon];
        let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(fine) {
            scheme = Some(name);
            rest = &rest[colon + 1..];
        }
    }
    let query = rest.find('?').map(|at| &rest[at + 1..]);
    rest = &rest[..rest.find('?').unwrap_or(rest.len())];
    let mut authority = None;
    if let Some(after) = rest.strip_prefix("//") {
        let end = after.find('/').unwrap_or(after.len());
        authority = Some(&after[..end]);
        rest = &after[end..];
    }
    UriParts { scheme, authority, path: rest, query }
}

/// The base's path with its last segment replaced.
fn merge(base: &UriParts<'_>, path: &str) -> String {
    if base.authority.is_some() && base.path.is_empty() {
        return format!("/{path}");
    }
    let folder = base.path.rfind('/').map_or("", |at| &base.path[..=at]);
    format!("{folder}{path}")
}

/// The path without `.` and `..` segments.
fn clean(path: &str) -> String {
    if !path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return path.into();
    }
    let rooted = path.starts_with('/');
    let mut out: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(usize::from(rooted)).collect();
    for (i, &segment) in segments.iter().enumerate() {
        let last = i + 1 == segments.len();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    out.pop();
                }
                if last {
                    out.push("");
                }
            }
            _ => out.push(segment),
        }
    }
    format!("{}{}", if rooted { "/" } else { "" }, out.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3986, sections 5.4.1 and 5.4.2.
    #[test]
    fn references_resolve_as_the_rfc_says() {
        let cases = [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("", "http://a/b/c/d;p?q"),
            (";x", "http://a/b/c/;x"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
        ];
        for (reference, whole) in cases {
            assert_eq!(resolve("http://a/b/c/d;p?q", reference), whole, "{reference}");
        }
        assert_eq!(resolve("http://a", "g"), "http://a/g");
        assert_eq!(resolve("urn:uuid:1", "#x"), "urn:uuid:1");
        assert_eq!(resolve("", "folder/x.json#/a"), "folder/x.json");
        assert_eq!(resolve("folder/x.json", "y.json"), "folder/y.json");
    }

    #[test]
    fn fragments_are_decoded() {
        assert_eq!(decode("/a%25b%22%C3%A9").as_deref(), Some("/a%b\"\u{e9}"));
        assert_eq!((decode("%"), decode("%4"), decode("%+1"), decode("%ff")), (None, None, None, None));
    }
}
