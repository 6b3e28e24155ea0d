//! Prints a loaded schema, one line per subschema: `NUMBER PLACE: KEYWORDS`.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use super::super::schema::keywords;
use super::super::{Keywords, NumberBound, Schema, SchemaNode, SubschemaId, TypeSet};

/// The types' names, a type and its parts after each other.
const TYPES: [(TypeSet, &str); 8] = [
    (TypeSet::NULL, "null"),
    (TypeSet::BOOLEAN, "boolean"),
    (TypeSet::NUMBER, "number"),
    (TypeSet::INTEGER, "integer"),
    (TypeSet::FRACTION, "fraction"),
    (TypeSet::STRING, "string"),
    (TypeSet::ARRAY, "array"),
    (TypeSet::OBJECT, "object"),
];

impl Display for Schema {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (id, node) in (0_u32..).zip(&self.nodes) {
            if id > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{id} {}:", self.places.get(id))?;
            match node {
                SchemaNode::True => f.write_str(" true")?,
                SchemaNode::False => f.write_str(" false")?,
                SchemaNode::Keywords(keywords) => {
                    let mut line = SchemaLine { out: f, first: true };
                    scalars(keywords, &mut line)?;
                    arrays(keywords, &mut line)?;
                    objects(keywords, &mut line)?;
                    logic(keywords, &mut line)?;
                }
            }
        }
        Ok(())
    }
}

/// The keywords of one line, with semicolons between them.
struct SchemaLine<'l, 'f> {
    out: &'l mut Formatter<'f>,
    first: bool,
}

impl SchemaLine<'_, '_> {
    fn put(&mut self, keyword: &str, value: impl Display) -> fmt::Result {
        self.out.write_str(if std::mem::take(&mut self.first) { " " } else { "; " })?;
        write!(self.out, "{keyword} {value}")
    }

    fn some(&mut self, keyword: &str, value: Option<impl Display>) -> fmt::Result {
        value.map_or(Ok(()), |value| self.put(keyword, value))
    }

    fn least(&mut self, keyword: &str, value: u64) -> fmt::Result {
        self.some(keyword, (value > 0).then_some(value))
    }

    fn list(&mut self, keyword: &str, values: &[impl ToString]) -> fmt::Result {
        self.some(keyword, (!values.is_empty()).then(|| list(values)))
    }

    fn named(&mut self, keyword: &str, values: &[(Arc<str>, SubschemaId)]) -> fmt::Result {
        let pairs: Vec<String> = values.iter().map(|(name, id)| format!("{name:?}={id}")).collect();
        self.list(keyword, &pairs)
    }
}

fn list(values: &[impl ToString]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn scalars(k: &Keywords, line: &mut SchemaLine<'_, '_>) -> fmt::Result {
    keywords! { k;
        read types, values, minimum, maximum, multiple_of, min_length, max_length, pattern, format;
        leave digits_only, items, min_items, max_items, unique_items, contains, contains_evaluates,
              unevaluated_items, properties, pattern_properties, additional_properties,
              unevaluated_properties, property_names, required, min_properties, max_properties,
              dependent_required, dependent_schemas, all_of, any_of, one_of, not, conditional, reading
    }
    if let Some(types) = *types {
        let mut left = types;
        let mut names = Vec::new();
        for (part, name) in TYPES {
            if left.has(part) {
                left.0 &= !part.0;
                names.push(name);
            }
        }
        line.put("type", list(&names))?;
    }
    if let Some(values) = values {
        line.put("values", list(values))?;
    }
    let bound =
        |bound: &NumberBound| format!("{}{}", if bound.exclusive { "beyond " } else { "" }, bound.value);
    line.some("minimum", minimum.as_ref().map(bound))?;
    line.some("maximum", maximum.as_ref().map(bound))?;
    line.some("multipleOf", multiple_of.as_ref())?;
    line.least("minLength", *min_length)?;
    line.some("maxLength", *max_length)?;
    line.some("pattern", pattern.as_ref().map(|_| "..."))?;
    line.some("format", format.as_ref().map(|_| "..."))
}

fn arrays(k: &Keywords, line: &mut SchemaLine<'_, '_>) -> fmt::Result {
    keywords! { k;
        read items, min_items, max_items, unique_items, contains, unevaluated_items;
        leave types, digits_only, values, minimum, maximum, multiple_of, min_length, max_length, pattern,
              format, contains_evaluates, properties, pattern_properties, additional_properties,
              unevaluated_properties, property_names, required, min_properties, max_properties,
              dependent_required, dependent_schemas, all_of, any_of, one_of, not, conditional, reading
    }
    if let Some(items) = items {
        line.list("prefixItems", &items.prefix)?;
        line.some("items", items.rest)?;
    }
    line.least("minItems", *min_items)?;
    line.some("maxItems", *max_items)?;
    line.some("uniqueItems", unique_items.then_some("true"))?;
    if let Some((id, least, most)) = *contains {
        line.put(
            "contains",
            format!("{id} {least}..{}", most.map_or(String::new(), |most| most.to_string())),
        )?;
    }
    line.some("unevaluatedItems", *unevaluated_items)
}

fn objects(k: &Keywords, line: &mut SchemaLine<'_, '_>) -> fmt::Result {
    keywords! { k;
        read unevaluated_properties, properties, pattern_properties, additional_properties, property_names,
             required, min_properties, max_properties, dependent_required, dependent_schemas;
        leave types, digits_only, values, minimum, maximum, multiple_of, min_length, max_length, pattern,
              format, items, min_items, max_items, unique_items, contains, contains_evaluates,
              unevaluated_items, all_of, any_of, one_of, not, conditional, reading
    }
    line.named("properties", properties)?;
    let patterned: Vec<String> = pattern_properties.iter().map(|(_, id)| format!("...={id}")).collect();
    line.list("patternProperties", &patterned)?;
    line.some("additionalProperties", *additional_properties)?;
    line.some("unevaluatedProperties", *unevaluated_properties)?;
    line.some("propertyNames", *property_names)?;
    let quoted = |names: &[Arc<str>]| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>();
    line.list("required", &quoted(required))?;
    line.least("minProperties", *min_properties)?;
    line.some("maxProperties", *max_properties)?;
    for (name, needed) in dependent_required {
        line.put("dependentRequired", format!("{name:?}=({})", list(&quoted(needed))))?;
    }
    line.named("dependentSchemas", dependent_schemas)
}

fn logic(k: &Keywords, line: &mut SchemaLine<'_, '_>) -> fmt::Result {
    keywords! { k;
        read all_of, any_of, one_of, not, conditional;
        leave types, digits_only, values, minimum, maximum, multiple_of, min_length, max_length, pattern,
              format, items, min_items, max_items, unique_items, contains, contains_evaluates,
              unevaluated_items, properties, pattern_properties, additional_properties,
              unevaluated_properties, property_names, required, min_properties, max_properties,
              dependent_required, dependent_schemas, reading
    }
    line.list("allOf", all_of)?;
    line.list("anyOf", any_of)?;
    line.list("oneOf", one_of)?;
    line.some("not", *not)?;
    if let Some((test, then, otherwise)) = *conditional {
        line.put("if", test)?;
        line.some("then", then)?;
        line.some("else", otherwise)?;
    }
    Ok(())
}
