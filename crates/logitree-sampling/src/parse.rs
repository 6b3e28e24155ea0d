//! The two notations of llama.cpp for a chain: names with `;` between them, and one letter for each sampler that
//! llama.cpp has.

use super::registry::{find_by_notation, SamplerRow, SAMPLERS};
use super::{presets, Chain, Params, Sampler};
use crate::{Error, ErrorKind, Result};

/// Characters of a text that an error shows.
const MAX_SHOWN: usize = 60;

impl Chain {
    /// Builds a chain from llama.cpp's notation: `"penalties;top_k;temperature"` (also with its aliases, as
    /// `top-k`, `topk`, `nucleus`, `temp`, `typ`; case does not matter) or its letters, as `"ekpmt"`.
    ///
    /// As there, a `logit_bias` comes first if `params` has biases and none is named, and `dist` comes last
    /// unless the text ends in a selecting sampler; `adaptive_p` goes last wherever it is named; with `mirostat` 1
    /// or 2 the chain is that of [`presets::llama_cpp`], and the text is ignored. A text that could be both is
    /// taken as a name.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for an unknown name or letter (llama.cpp only warns), for invalid parameters,
    /// and for an empty text.
    pub fn parse(text: &str, params: &Params) -> Result<Chain> {
        let mut rows = if text.contains(';') || find_by_notation(text).is_some() {
            by_names(text)
        } else {
            by_letters(text)
        }?;
        let params = &params.with_seed()?;
        if params.mirostat() != 0 {
            return presets::mirostat(params);
        }
        // A stable sort: all others keep their order.
        rows.sort_by_key(|row| row.name == "adaptive_p");
        let built = rows.iter().map(|row| build(row, params)).collect::<Result<_>>()?;
        presets::assemble(built, params)
    }
}

/// The sampler of a row; `temp` is the dynamic temperature where that has a range.
fn build(row: &SamplerRow, params: &Params) -> Result<Box<dyn Sampler>> {
    match row.name {
        "temp" => params.temperature(),
        _ => params.build(row),
    }
}

fn by_names(text: &str) -> Result<Vec<&'static SamplerRow>> {
    let mut rows = Vec::new();
    for (name, at) in text.split(';').zip(1..) {
        match find_by_notation(name) {
            Some(row) => rows.push(row),
            // A trailing separator is no name.
            None if name.trim().is_empty() => {}
            None => {
                let known: Vec<&str> = SAMPLERS.iter().map(|row| row.name).collect();
                return Err(Error::new(
                    ErrorKind::Sampling,
                    format!("there is no sampler {:?}", short(name.trim())),
                )
                .at(format!("name {at} of {:?}", short(text)))
                .help(format!("known: {}", known.join(", "))));
            }
        }
    }
    if rows.is_empty() {
        return Err(empty());
    }
    Ok(rows)
}

fn by_letters(text: &str) -> Result<Vec<&'static SamplerRow>> {
    let mut rows = Vec::new();
    for (letter, at) in text.trim().chars().zip(1..) {
        let Some(row) = SAMPLERS.iter().find(|row| row.letter == Some(letter)) else {
            let known: Vec<String> =
                SAMPLERS.iter().filter_map(|row| row.letter.map(|l| format!("{l} {}", row.name))).collect();
            return Err(Error::new(ErrorKind::Sampling, format!("no sampler has the letter {letter:?}"))
                .at(format!("letter {at} of {:?}", short(text)))
                .help(format!("letters: {}; or write names with ';' between them", known.join(", "))));
        };
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(empty());
    }
    Ok(rows)
}

/// The text, or its beginning if it is too long to be shown.
fn short(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}

fn empty() -> Error {
    Error::new(ErrorKind::Sampling, "the chain's text names no sampler").help("write \"dist\" to only draw")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&'static str> {
        Chain::parse(text, &Params::default().seed(1)).unwrap().names()
    }

    #[test]
    fn both_notations_and_their_aliases() {
        let expected = ["penalties", "top_k", "typ_p", "top_p", "min_p", "temp", "dist"];
        assert_eq!(names("penalties;top_k;typ_p;top_p;min_p;temperature"), expected);
        assert_eq!(names("PENALTIES; top-k ;typ;nucleus;minp;temp;"), expected);
        assert_eq!(names("ekypmt"), expected);
        // "temp" is a name before it is four letters.
        assert_eq!(names("temp"), ["temp", "dist"]);
        assert_eq!(names("tempp"), ["temp", "penalties", "min_p", "top_p", "top_p", "dist"]);
        assert_eq!(names("top_k;greedy"), ["top_k", "greedy"]);
        assert_eq!(names("topnsigma;dist"), ["top_n_sigma", "dist"]);
        let beyond = "no-repeat-ngram;epsilon;eta;toph;mink;pless;edt;hf-top-h;hf-top-k;hf-top-p;hf-typ-p;ts-top-k;ts-top-n-sigma";
        let expected = [
            "no_repeat_ngram",
            "epsilon_cutoff",
            "eta_cutoff",
            "top_h",
            "min_k",
            "p_less",
            "edt",
            "hf_top_h",
            "hf_top_k",
            "hf_top_p",
            "hf_typ_p",
            "ts_top_k",
            "ts_top_n_sigma",
            "dist",
        ];
        assert_eq!(names(beyond), expected);
        let all =
            ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temp", "dist"];
        assert_eq!(names("edskypmxt"), all);
        assert_eq!(names("akt"), ["top_k", "temp", "adaptive_p"]);
        assert_eq!(names("adaptive-p;top_k"), ["top_k", "adaptive_p"]);
        assert_eq!(names("top_k;mirostat_v2"), ["top_k", "mirostat_v2"]);
    }

    #[test]
    fn biases_come_first_unless_named() {
        let params = Params::default().seed(0).with("logit_bias", vec![(3, 1.0)]);
        let names = |text| Chain::parse(text, &params).unwrap().names();
        assert_eq!(names("kt"), ["logit_bias", "top_k", "temp", "dist"]);
        assert_eq!(names("top_k;logit_bias"), ["top_k", "logit_bias", "dist"]);
    }

    #[test]
    fn a_range_makes_the_temperature_dynamic_and_mirostat_replaces_the_rest() {
        let params = Params::default().seed(1).with("dynatemp_range", 0.5);
        assert_eq!(Chain::parse("kt", &params).unwrap().names(), ["top_k", "temp_ext", "dist"]);
        for (mirostat, name) in [(1, "mirostat"), (2, "mirostat_v2")] {
            let params = params.clone().with("mirostat", mirostat).with("logit_bias", vec![(3, 1.0)]);
            assert_eq!(Chain::parse("kt", &params).unwrap().names(), ["logit_bias", "temp", name]);
        }
        assert!(Chain::parse("kt", &params.with("mirostat", 3)).is_err());
    }

    #[test]
    fn invalid_rules_are_errors_with_their_place() {
        for (text, place) in [("top_k;topq", "name 2 of"), ("kzt", "letter 2 of"), ("", ""), (";", "")] {
            let error = Chain::parse(text, &Params::default()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Sampling, "{text}");
            assert!(error.place.starts_with(place), "{error}");
        }
        assert!(Chain::parse("dist;top_k", &Params::default()).is_err());
        assert!(Chain::parse("mirostat;top_k", &Params::default()).is_err());
        assert!(Chain::parse("adaptive_p;dist", &Params::default()).is_err());
        assert!(Chain::parse("i", &Params::default()).unwrap_err().help.contains("vocabulary"));
        assert!(Chain::parse("temp", &Params::default().with("temp", f32::NAN)).is_err());
    }
}
