//! Fields by their dotted names.

use super::fields::{Field, Kind, Step};
use super::near::near;

/// A field found by its path.
pub(super) struct Target {
    pub path: Vec<Step>,
    pub kind: Kind,
    pub repeated: bool,
    /// Its last name.
    pub name: String,
    /// Whether it is a value in a map.
    pub in_map: bool,
    /// The only texts that it can hold; none: any text.
    pub values: &'static [&'static str],
}

impl Target {
    /// The field that a dotted path names; the error is what was expected.
    pub fn find(schema: &'static [Field], dotted: &str) -> Result<Self, String> {
        let mut target = Self {
            path: Vec::new(),
            kind: Kind::Message(schema),
            repeated: false,
            name: String::new(),
            in_map: false,
            values: &[],
        };
        for name in dotted.split('.') {
            match target.kind {
                Kind::Message(fields) => {
                    let Some(field) = fields.iter().find(|field| field.name == name || field.json == name) else {
                        let wanted = if target.name.is_empty() {
                            "a field"
                        } else {
                            "a field of it"
                        };
                        let near = match near(schema, dotted) {
                            near if near.is_empty() => near,
                            near => format!("; did you mean {near}?"),
                        };
                        return Err(format!("{wanted}: {}{near}", names(fields)));
                    };
                    target.path.push(Step::Field(field.tag));
                    target.kind = field.kind;
                    target.repeated |= field.repeated;
                    target.values = field.values;
                }
                Kind::Map if !target.in_map => {
                    target.path.push(Step::Key(name.to_owned()));
                    target.in_map = true;
                }
                _ => return Err(format!("no field behind {}: it is a plain value", target.name)),
            }
            target.name = name.to_owned();
        }
        Ok(target)
    }
}

/// The names of all fields.
pub(super) fn names(schema: &[Field]) -> String {
    schema.iter().map(|field| field.name).collect::<Vec<_>>().join(", ")
}
