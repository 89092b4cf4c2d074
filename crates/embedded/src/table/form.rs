//! Which form a client asks for, by its `Accept`.

/// What a row of a table carries besides its cells (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// The metadata: what happens if nothing is asked for.
    Metadata,
    /// The whole object.
    Object,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Whole,
    /// As rows of a table.
    Table(Include),
    /// Without anything but its metadata.
    Metadata,
}

impl Form {
    /// The first form of those asked for that the server has. Nothing asked for: whole.
    ///
    /// # Errors
    /// The text of a `NotAcceptable`, or (for `includeObject`) of a `BadRequest`.
    pub fn negotiate(accept: Option<&str>, include_object: Option<&str>) -> Result<Self, String> {
        let include = match include_object {
            None | Some("" | "Metadata") => Include::Metadata,
            Some("Object") => Include::Object,
            Some("None") => Include::None,
            Some(other) => {
                return Err(format!(
                    "unrecognized includeObject value {other:?}: must be None, Metadata or Object"
                ));
            }
        };
        let accept = accept.map(str::trim).filter(|accept| !accept.is_empty());
        let Some(accept) = accept else {
            return Ok(Form::Whole);
        };
        accept
            .split(',')
            .find_map(|media| form(media, include))
            .ok_or_else(|| {
                "only the following media types are accepted: application/json, \
                 application/json;as=Table;v=v1;g=meta.k8s.io, \
                 application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
                    .to_owned()
            })
    }
}

fn form(media: &str, include: Include) -> Option<Form> {
    let mut parts = media.split(';').map(str::trim);
    let kind = parts.next()?.to_ascii_lowercase();
    if !matches!(kind.as_str(), "application/json" | "application/*" | "*/*") {
        return None;
    }
    let (mut of, mut group, mut version) = ("", "", "");
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        match key.trim() {
            "as" => of = value.trim(),
            "g" => group = value.trim(),
            "v" => version = value.trim(),
            _ => {}
        }
    }
    match (of, group, version) {
        ("", _, _) => Some(Form::Whole),
        ("Table", "meta.k8s.io", "v1") => Some(Form::Table(include)),
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => {
            Some(Form::Metadata)
        }
        _ => None,
    }
}
