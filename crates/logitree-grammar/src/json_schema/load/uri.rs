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
    let scheme = out.scheme.map_or(String::new(), |scheme| format!("{scheme}:"));
    let authority = out.authority.map_or(String::new(), |authority| format!("//{authority}"));
    let query = out.query.map_or(String::new(), |query| format!("?{query}"));
    format!("{scheme}{authority}{path}{query}")
}

/// A fragment with its percent escapes undone; `None` where that is no text.
pub(super) fn decode(fragment: &str) -> Option<String> {
    let mut parts = fragment.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

fn parts(reference: &str) -> UriParts<'_> {
    let (rest, query) =
        reference.split_once('?').map_or((reference, None), |(rest, query)| (rest, Some(query)));
    let is_scheme = |name: &str| {
        let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(fine)
    };
    let (scheme, rest) = match rest.split_once(':').filter(|(name, _)| is_scheme(name)) {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, rest),
    };
    let (authority, path) = match rest.strip_prefix("//") {
        Some(after) => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            (Some(authority), path)
        }
        None => (None, rest),
    };
    UriParts { scheme, authority, path, query }
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
    for segment in path.split('/').skip(usize::from(rooted)) {
        match segment {
            "." => {}
            ".." => drop(out.pop()),
            _ => out.push(segment),
        }
    }
    if path.ends_with("/.") || path.ends_with("/..") || matches!(path, "." | "..") {
        out.push("");
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
