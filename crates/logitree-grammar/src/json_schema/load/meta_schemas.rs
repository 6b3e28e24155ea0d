//! The meta-schemas of the drafts, as published by the JSON Schema authors (`meta_schemas/LICENSE`).

/// URI and text of each.
const META_SCHEMAS: &[(&str, &str)] = &[
    ("http://json-schema.org/draft-04/schema", include_str!("meta_schemas/draft4.json")),
    ("http://json-schema.org/draft-06/schema", include_str!("meta_schemas/draft6.json")),
    ("http://json-schema.org/draft-07/schema", include_str!("meta_schemas/draft7.json")),
    ("https://json-schema.org/draft/2019-09/schema", include_str!("meta_schemas/2019-09.json")),
    (
        "https://json-schema.org/draft/2019-09/meta/applicator",
        include_str!("meta_schemas/2019-09-applicator.json"),
    ),
    ("https://json-schema.org/draft/2019-09/meta/content", include_str!("meta_schemas/2019-09-content.json")),
    ("https://json-schema.org/draft/2019-09/meta/core", include_str!("meta_schemas/2019-09-core.json")),
    ("https://json-schema.org/draft/2019-09/meta/format", include_str!("meta_schemas/2019-09-format.json")),
    (
        "https://json-schema.org/draft/2019-09/meta/meta-data",
        include_str!("meta_schemas/2019-09-meta-data.json"),
    ),
    (
        "https://json-schema.org/draft/2019-09/meta/validation",
        include_str!("meta_schemas/2019-09-validation.json"),
    ),
    ("https://json-schema.org/draft/2020-12/schema", include_str!("meta_schemas/2020-12.json")),
    (
        "https://json-schema.org/draft/2020-12/meta/applicator",
        include_str!("meta_schemas/2020-12-applicator.json"),
    ),
    ("https://json-schema.org/draft/2020-12/meta/content", include_str!("meta_schemas/2020-12-content.json")),
    ("https://json-schema.org/draft/2020-12/meta/core", include_str!("meta_schemas/2020-12-core.json")),
    (
        "https://json-schema.org/draft/2020-12/meta/format-annotation",
        include_str!("meta_schemas/2020-12-format-annotation.json"),
    ),
    (
        "https://json-schema.org/draft/2020-12/meta/format-assertion",
        include_str!("meta_schemas/2020-12-format-assertion.json"),
    ),
    (
        "https://json-schema.org/draft/2020-12/meta/meta-data",
        include_str!("meta_schemas/2020-12-meta-data.json"),
    ),
    (
        "https://json-schema.org/draft/2020-12/meta/unevaluated",
        include_str!("meta_schemas/2020-12-unevaluated.json"),
    ),
    (
        "https://json-schema.org/draft/2020-12/meta/validation",
        include_str!("meta_schemas/2020-12-validation.json"),
    ),
];

/// The meta-schema of this URI (without fragment).
pub(super) fn find(uri: &str) -> Option<&'static str> {
    META_SCHEMAS.iter().find(|(name, _)| *name == uri).map(|(_, text)| *text)
}
