//! The keywords of each draft and vocabulary that assert something.

use super::super::Draft;

/// The vocabularies that can be left out. The core is always there; descriptions assert nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeywordGroup {
    Core,
    Applicator,
    Validation,
    Unevaluated,
    Format,
}

/// A draft, and which groups of keywords it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    pub draft: Draft,
    groups: [bool; 5],
}

/// A keyword that asserts: the drafts it is in, and its group.
struct KeywordEntry {
    name: &'static str,
    since: Draft,
    until: Draft,
    group: KeywordGroup,
}

macro_rules! keywords {
    ($($keyword:ident $name:literal $since:ident $until:ident $group:ident,)*) => {
        /// The keywords that assert something.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        #[allow(clippy::enum_variant_names)] // JSON Schema's own names
        pub(super) enum Keyword { $($keyword),* }

        const TABLE: &[KeywordEntry] = &[$(KeywordEntry {
            name: $name, since: Draft::$since, until: Draft::$until, group: KeywordGroup::$group
        }),*];
        const KEYWORDS: &[Keyword] = &[$(Keyword::$keyword),*];
    };
}

// By length, so that a name is compared with few. `dependencies` stays in all drafts: newer ones only discourage it.
keywords! {
    If "if" Draft7 Draft2020 Applicator,
    Not "not" Draft4 Draft2020 Applicator,
    Ref "$ref" Draft4 Draft2020 Core,
    Type "type" Draft4 Draft2020 Validation,
    Enum "enum" Draft4 Draft2020 Validation,
    Then "then" Draft7 Draft2020 Applicator,
    Else "else" Draft7 Draft2020 Applicator,
    Const "const" Draft6 Draft2020 Validation,
    ItemsKeyword "items" Draft4 Draft2020 Applicator,
    AllOf "allOf" Draft4 Draft2020 Applicator,
    AnyOf "anyOf" Draft4 Draft2020 Applicator,
    OneOf "oneOf" Draft4 Draft2020 Applicator,
    Format "format" Draft4 Draft2020 Format,
    Pattern "pattern" Draft4 Draft2020 Validation,
    Minimum "minimum" Draft4 Draft2020 Validation,
    Maximum "maximum" Draft4 Draft2020 Validation,
    MinItems "minItems" Draft4 Draft2020 Validation,
    MaxItems "maxItems" Draft4 Draft2020 Validation,
    Required "required" Draft4 Draft2020 Validation,
    Contains "contains" Draft6 Draft2020 Applicator,
    MinLength "minLength" Draft4 Draft2020 Validation,
    MaxLength "maxLength" Draft4 Draft2020 Validation,
    MultipleOf "multipleOf" Draft4 Draft2020 Validation,
    Properties "properties" Draft4 Draft2020 Applicator,
    UniqueItems "uniqueItems" Draft4 Draft2020 Validation,
    PrefixItems "prefixItems" Draft2020 Draft2020 Applicator,
    MinContains "minContains" Draft2019 Draft2020 Validation,
    MaxContains "maxContains" Draft2019 Draft2020 Validation,
    DynamicRef "$dynamicRef" Draft2020 Draft2020 Core,
    Dependencies "dependencies" Draft4 Draft2020 Applicator,
    RecursiveRef "$recursiveRef" Draft2019 Draft2019 Core,
    MinProperties "minProperties" Draft4 Draft2020 Validation,
    MaxProperties "maxProperties" Draft4 Draft2020 Validation,
    PropertyNames "propertyNames" Draft6 Draft2020 Applicator,
    AdditionalItems "additionalItems" Draft4 Draft2020 Applicator,
    ContentEncoding "contentEncoding" Draft7 Draft7 Format,
    ExclusiveMinimum "exclusiveMinimum" Draft4 Draft2020 Validation,
    ExclusiveMaximum "exclusiveMaximum" Draft4 Draft2020 Validation,
    ContentMediaType "contentMediaType" Draft7 Draft7 Format,
    UnevaluatedItems "unevaluatedItems" Draft2019 Draft2020 Unevaluated,
    DependentSchemas "dependentSchemas" Draft2019 Draft2020 Applicator,
    DependentRequired "dependentRequired" Draft2019 Draft2020 Validation,
    PatternProperties "patternProperties" Draft4 Draft2020 Applicator,
    AdditionalProperties "additionalProperties" Draft4 Draft2020 Applicator,
    UnevaluatedProperties "unevaluatedProperties" Draft2019 Draft2020 Unevaluated,
}

/// How many there are.
pub(super) const KEYWORD_COUNT: usize = TABLE.len();

/// Where names of each length begin in the table.
const STARTS: [u8; 23] = {
    let mut starts = [0; 23];
    let mut length = 0;
    while length < starts.len() {
        let mut at = 0;
        while at < TABLE.len() && TABLE[at].name.len() < length {
            at += 1;
        }
        starts[length] = at as u8;
        length += 1;
    }
    starts
};

impl Keyword {
    /// How the document writes it.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].name
    }
}

impl Dialect {
    /// A draft as it was published.
    pub fn of(draft: Draft) -> Dialect {
        Dialect { draft, groups: [true; 5] }
    }

    /// A draft without some groups.
    pub fn with(draft: Draft, has: impl Fn(KeywordGroup) -> bool) -> Dialect {
        let groups = [
            KeywordGroup::Core,
            KeywordGroup::Applicator,
            KeywordGroup::Validation,
            KeywordGroup::Unevaluated,
            KeywordGroup::Format,
        ];
        Dialect { draft, groups: groups.map(has) }
    }

    /// The keyword of this name, if the dialect has it.
    pub fn keyword(&self, name: &str) -> Option<Keyword> {
        let from = *STARTS.get(name.len())? as usize;
        let to = STARTS.get(name.len() + 1).map_or(TABLE.len(), |&to| to as usize);
        let at = from + TABLE[from..to].iter().position(|entry| entry.name == name)?;
        let entry = &TABLE[at];
        let has = entry.since <= self.draft && self.draft <= entry.until && self.groups[entry.group as usize];
        has.then_some(KEYWORDS[at])
    }

    /// The keyword that names a subschema.
    pub fn id(&self) -> &'static str {
        if self.draft == Draft::Draft4 {
            "id"
        } else {
            "$id"
        }
    }

    /// Whether `$ref` makes its sibling keywords ineffective.
    pub fn ref_stands_alone(&self) -> bool {
        self.draft <= Draft::Draft7
    }
}

/// The draft whose meta-schema this URI names.
pub(super) fn draft(uri: &str) -> Option<Draft> {
    let uri = uri.strip_suffix('#').unwrap_or(uri);
    let path = uri.strip_prefix("http://").or_else(|| uri.strip_prefix("https://"))?;
    Some(match path.strip_prefix("json-schema.org/")?.trim_end_matches('/') {
        "draft-04/schema" => Draft::Draft4,
        "draft-06/schema" => Draft::Draft6,
        "draft-07/schema" => Draft::Draft7,
        "draft/2019-09/schema" => Draft::Draft2019,
        "draft/2020-12/schema" => Draft::Draft2020,
        _ => return None,
    })
}

/// The group that a vocabulary's URI names: outer `None` for an unknown one, inner `None` for one that asserts nothing.
pub(super) fn vocabulary(uri: &str) -> Option<Option<KeywordGroup>> {
    let path = uri.strip_prefix("https://json-schema.org/draft/")?;
    let name = path.strip_prefix("2019-09/vocab/").or_else(|| path.strip_prefix("2020-12/vocab/"))?;
    Some(match name {
        "core" => Some(KeywordGroup::Core),
        "applicator" => Some(KeywordGroup::Applicator),
        "validation" => Some(KeywordGroup::Validation),
        "unevaluated" => Some(KeywordGroup::Unevaluated),
        "format" | "format-annotation" | "format-assertion" => Some(KeywordGroup::Format),
        "meta-data" | "content" => None,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found_in_its_drafts() {
        assert!(TABLE.windows(2).all(|w| w[0].name.len() <= w[1].name.len()));
        let newest = Dialect::of(Draft::Draft2020);
        for (entry, &keyword) in TABLE.iter().zip(KEYWORDS) {
            let expected = (entry.until == Draft::Draft2020).then_some(keyword);
            assert_eq!(newest.keyword(entry.name), expected, "{}", entry.name);
            assert_eq!(keyword.name(), entry.name);
        }
        assert_eq!(Dialect::of(Draft::Draft4).keyword("const"), None);
        assert_eq!(Dialect::of(Draft::Draft2019).keyword("$recursiveRef"), Some(Keyword::RecursiveRef));
        assert!(["", "x", "title", "additionalPropertiesOfMany"].iter().all(|n| newest.keyword(n).is_none()));
        let bare = Dialect::with(Draft::Draft2020, |group| group != KeywordGroup::Validation);
        assert_eq!((bare.keyword("minimum"), bare.keyword("not")), (None, Some(Keyword::Not)));
    }
}
