//! A chain's parameters as a JSON object: keywords of `Params`, such as {"temp": 0.8, "top_k": 40, "seed": 42}, or a list of
//! samplers with their own.

use logitree::sampling::registry::Kind;
use logitree::sampling::registry::{unknown, MIROSTAT};
use logitree::sampling::{presets, registry, Breakers, Generator, Params, Seed, Value};
use logitree::{Chain, Error, ErrorKind, Result, TokenId};
use serde_json::Value as Json;

use logitree::constraint::form::{parse, Fields};

/// The chain that a notation names, with these parameters; without a notation, that of the parameter "preset":
/// "llama_cpp" (the default), "tsampler" or "transformers".
///
/// # Errors
/// [`ErrorKind::Sampling`] for what no sampler has, with a JSON pointer where a parameter is wrong.
pub fn chain(notation: Option<&str>, parameters: Option<&[u8]>) -> Result<Chain> {
    let json =
        parameters.map_or(Ok(Json::Object(Default::default())), |text| parse(text, ErrorKind::Sampling))?;
    let mut fields = Fields::new(json, "", ErrorKind::Sampling)?;
    if fields.has("samplers") {
        if notation.is_some() {
            return Err(fields.wrong("samplers", "left out where there is a notation"));
        }
        let samplers = fields.list("samplers")?;
        fields.end()?;
        return listed(samplers);
    }
    let preset = fields.optional_text("preset")?;
    let (start, build): (_, fn(&Params) -> Result<Chain>) = match (notation, preset.as_deref()) {
        (Some(_), Some(_)) => return Err(fields.wrong("preset", "left out where there is a notation")),
        (_, None | Some("llama_cpp")) => (Params::default(), presets::llama_cpp),
        (None, Some("tsampler")) => (Params::tsampler(), presets::tsampler),
        (None, Some("transformers")) => (Params::transformers(), presets::transformers),
        (None, Some(_)) => {
            return Err(fields.wrong("preset", "\"llama_cpp\", \"tsampler\" or \"transformers\""))
        }
    };
    let params = read(start, &mut fields)?;
    notation.map_or_else(|| build(&params), |notation| Chain::parse(notation, &params))
}

/// The chain of these samplers, each an object with its name and its parameters.
fn listed(samplers: Vec<Json>) -> Result<Chain> {
    let sampler = |(at, json): (usize, Json)| {
        let place = format!("/samplers/{at}");
        let mut fields = Fields::new(json, &place, ErrorKind::Sampling)?;
        let name = fields.text("name")?;
        let Some(row) = registry::find(&name) else {
            return Err(fields.wrong("name", "the name of a sampler").help("docs/samplers.md lists them"));
        };
        let mut given = Vec::new();
        for parameter in row.parameters {
            let made = match parameter.kind {
                Kind::Seed => Value::Seed(seed(&mut fields)?),
                kind => match fields.take(parameter.name) {
                    Some(json) => value(kind, &json).map_err(|what| fields.wrong(parameter.name, &what))?,
                    None => continue,
                },
            };
            given.push((parameter.name, made));
        }
        fields.end()?;
        row.build_with(&given).map_err(|error| error.at(place))
    };
    let samplers = samplers.into_iter().enumerate().map(sampler).collect::<Result<Vec<_>>>()?;
    Chain::new(samplers)
}

/// What a sampler draws from: "seed", "rng" and "sequence"; a fresh seed where there is none.
fn seed(fields: &mut Fields) -> Result<Seed> {
    let generator = match fields.optional_text("rng")? {
        Some(name) => Generator::parse(&name).map_err(|error| error.at(fields.at("rng")))?,
        None => Generator::default(),
    };
    let sequence = fields.count("sequence")?.unwrap_or(0);
    let sequence =
        u32::try_from(sequence).map_err(|_| fields.wrong("sequence", "a whole number of at most 32 bits"))?;
    let seed = match fields.take("seed") {
        Some(json) => {
            json.as_u64().ok_or_else(|| fields.wrong("seed", "a whole number of at most 64 bits"))?
        }
        None => Seed::fresh()?.seed,
    };
    Seed { generator, seed, sequence }.checked().map_err(|error| error.at(fields.at("seed")))
}

fn read(start: Params, fields: &mut Fields) -> Result<Params> {
    let mut params = start;
    for (name, json) in fields.rest() {
        let wrong = |what: &str| fields.wrong(&name, what);
        params = match name.as_str() {
            "seed" => params.seed(json.as_u64().ok_or_else(|| wrong("a whole number of at most 64 bits"))?),
            "rng" => params.rng(Generator::parse(json.as_str().ok_or_else(|| wrong("a name"))?)?),
            "sequence" => {
                let sequence = json.as_u64().and_then(|n| u32::try_from(n).ok());
                params.sequence(sequence.ok_or_else(|| wrong("a whole number of at most 32 bits"))?)
            }
            _ => {
                let kind = match registry::keyword_row(&name) {
                    Some(row) => row.kind,
                    None if name == MIROSTAT => Kind::Int,
                    None => return Err(unknown(&name).at(fields.at(&name))),
                };
                let value = value(kind, &json).map_err(|what| wrong(&what))?;
                params.set(&name, value).map_err(|error: Error| error.at(fields.at(&name)))?;
                params
            }
        };
    }
    Ok(params)
}

/// The value of this kind, or what it must be.
fn value(kind: Kind, json: &Json) -> Result<Value, String> {
    let is_none = json.is_null() && matches!(kind, Kind::OptionalInt | Kind::Breakers);
    let value = match kind {
        _ if is_none => Some(Value::Nothing),
        Kind::Int | Kind::OptionalInt | Kind::Count => {
            json.as_i64().and_then(|n| i32::try_from(n).ok()).map(Value::Int)
        }
        Kind::Float => json.as_f64().map(|x| Value::Float(x as f32)),
        Kind::Truth => json.as_bool().map(Value::Truth),
        Kind::Biases => biases(json).map(Value::from),
        Kind::Breakers => breakers(json).map(Value::Breakers),
        Kind::Seed | Kind::Pieces => None,
    };
    value.ok_or_else(|| {
        let what = match kind {
            Kind::Int | Kind::OptionalInt | Kind::Count => "a whole number of at most 31 bits",
            Kind::Float => "a number",
            Kind::Truth => "true or false",
            Kind::Biases => "an object of token ids and numbers",
            Kind::Breakers => "a list of lists of token ids",
            Kind::Seed | Kind::Pieces => "left out: it has no JSON form",
        };
        what.to_string()
    })
}

fn biases(json: &Json) -> Option<Vec<(TokenId, f32)>> {
    let pair = |(id, bias): (&String, &Json)| Some((id.parse().ok()?, bias.as_f64()? as f32));
    json.as_object()?.iter().map(pair).collect()
}

fn breakers(json: &Json) -> Option<Breakers> {
    let id = |id: &Json| id.as_u64().and_then(|id| TokenId::try_from(id).ok());
    let one = |ids: &Json| ids.as_array()?.iter().map(id).collect::<Option<Vec<TokenId>>>();
    let all: Option<Vec<Vec<TokenId>>> = json.as_array()?.iter().map(one).collect();
    Breakers::new(&all?).ok()
}
