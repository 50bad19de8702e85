//! From `proto/weir/v1/*.proto`: the gRPC services and clients (messages are those of
//! weir-messages), and for each message the table of fields that filters read.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

const PACKAGE: &str = "weir.v1";
const MESSAGES: &str = "::weir_messages::v1";

fn main() -> Result<(), Box<dyn Error>> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    let directory = include.join("weir/v1");
    println!("cargo:rerun-if-changed={}", directory.display());

    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .map_err(|error| format!("cannot list {}: {error}", directory.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "proto"));
    files.sort();

    let descriptors = protox::compile(&files, [&include])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("fields.rs"), fields(&descriptors)?)?;
    tonic_prost_build::configure()
        .extern_path(".weir.v1", MESSAGES)
        .compile_fds(descriptors)?;
    Ok(())
}

/// The `Fields` implementation of the messages that a filter can be about, and of what they hold.
fn fields(set: &FileDescriptorSet) -> Result<String, Box<dyn Error>> {
    let files = set.file.iter().filter(|file| file.package() == PACKAGE);
    let messages: Vec<(&DescriptorProto, Comments<'_>)> = files
        .flat_map(|file| {
            let all = (0..).zip(&file.message_type);
            all.map(|(index, message)| (message, Comments { file, message: index }))
        })
        .collect();
    let mut wanted = vec!["Connection", "Transaction", "Segment", "Finding"];
    let mut done = 0;
    let mut code = String::new();
    while done < wanted.len() {
        let name = wanted[done];
        done += 1;
        let (message, comments) = messages
            .iter()
            .find(|(message, _)| message.name() == name)
            .ok_or_else(|| format!("no message {name} in package {PACKAGE}"))?;
        for field in &message.field {
            if let Some(inner) = inner_message(field)
                && inner != "FindingValue"
                && !is_map(message, field)
                && !wanted.contains(&inner)
            {
                wanted.push(inner);
            }
        }
        write_message(message, comments, &mut code)?;
    }
    Ok(code)
}

/// Where the comments of a message's fields are.
struct Comments<'a> {
    file: &'a FileDescriptorProto,
    /// Its position in the file.
    message: i32,
}

impl Comments<'_> {
    /// What stands above a field.
    fn of(&self, field: i32) -> &str {
        // Numbers of message_type in FileDescriptorProto and of field in DescriptorProto.
        let path = [4, self.message, 2, field];
        let all = self.file.source_code_info.iter().flat_map(|info| &info.location);
        let mut at = all.filter(|location| location.path == path);
        at.next().map_or("", |location| location.leading_comments())
    }
}

/// The values that a comment lists: `ONE, TWO or THREE`. Nothing else says what a text can be.
fn listed(comment: &str) -> Vec<&str> {
    let mut values = Vec::new();
    let mut last = false;
    for word in comment.split_whitespace() {
        if word == "or" {
            last = true;
            continue;
        }
        let value = word.trim_end_matches([',', '.', ';']);
        if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') {
            values.clear();
        } else {
            values.push(value);
            if last && values.len() > 1 {
                return values;
            }
        }
        last = false;
    }
    Vec::new()
}

/// Name of the field's message type when it is one of the package.
fn inner_message(field: &FieldDescriptorProto) -> Option<&str> {
    field.type_name().strip_prefix(".weir.v1.")
}

fn is_map(message: &DescriptorProto, field: &FieldDescriptorProto) -> bool {
    let entry = field.type_name().rsplit('.').next().unwrap_or_default();
    message
        .nested_type
        .iter()
        .any(|nested| nested.name() == entry && nested.options.as_ref().is_some_and(|options| options.map_entry()))
}

fn write_message(message: &DescriptorProto, comments: &Comments<'_>, code: &mut String) -> Result<(), Box<dyn Error>> {
    let (mut schema, mut visit, mut texts) = (String::new(), String::new(), String::new());
    for (index, field) in (0..).zip(&message.field) {
        let (name, tag) = (field.name(), field.number());
        let repeated = field.label() == Label::Repeated;
        let optional = field.proto3_optional();
        let place = format!("{}.{name}", message.name());
        // How a value `v` (a reference) becomes a `Value`; None for messages.
        let (kind, value) = match (field.r#type(), field.type_name()) {
            (Type::Message, _) if is_map(message, field) => ("Kind::Map".to_owned(), None),
            (Type::Message, ".google.protobuf.Timestamp") => ("Kind::Time".to_owned(), Some("Value::Time(*v)")),
            (Type::Message, _) => {
                let inner = inner_message(field).ok_or_else(|| format!("{place}: unknown message type"))?;
                (format!("Kind::Message(<{MESSAGES}::{inner} as Fields>::SCHEMA)"), None)
            }
            (Type::String, _) => ("Kind::Text".to_owned(), Some("Value::Text(v)")),
            (Type::Bool, _) => ("Kind::Bool".to_owned(), Some("Value::Bool(*v)")),
            (Type::Uint32, _) => ("Kind::Integer".to_owned(), Some("Value::Integer(u64::from(*v))")),
            (Type::Uint64, _) => ("Kind::Integer".to_owned(), Some("Value::Integer(*v)")),
            (Type::Double, _) => ("Kind::Number".to_owned(), Some("Value::Number(*v)")),
            (other, _) => return Err(format!("{place}: filters do not know the type {other:?} yet").into()),
        };
        let values = match field.r#type() {
            Type::String => listed(comments.of(index)),
            _ => Vec::new(),
        };
        writeln!(
            schema,
            "        Field {{ name: {name:?}, json: {:?}, tag: {tag}, kind: {kind}, repeated: {}, values: &{values:?} }},",
            field.json_name(),
            repeated && kind != "Kind::Map",
        )?;

        let single = repeated || optional || field.r#type() == Type::Message;
        let arm = match (&value, kind.as_str()) {
            (_, "Kind::Map") => format!("map(&self.{name}, rest, test)"),
            (Some(value), _) if single => format!("self.{name}.iter().any(|v| test({value}))"),
            (Some(value), _) => format!("{{ let v = &self.{name}; test({value}) }}"),
            (None, _) => format!("self.{name}.iter().any(|v| v.visit(rest, test))"),
        };
        writeln!(visit, "            {tag} => {arm},")?;

        match (kind.as_str(), single) {
            ("Kind::Text", true) => writeln!(texts, "            || self.{name}.iter().any(|v| test(v))")?,
            ("Kind::Text", false) => writeln!(texts, "            || test(&self.{name})")?,
            ("Kind::Map", _) => writeln!(texts, "            || map_texts(&self.{name}, test)")?,
            (kind, _) if kind.starts_with("Kind::Message") => {
                writeln!(texts, "            || self.{name}.iter().any(|v| v.texts(test))")?;
            }
            _ => {}
        }
    }
    write!(
        code,
        "impl Fields for {MESSAGES}::{name} {{
    const SCHEMA: &'static [Field] = &[
{schema}    ];

    fn visit(&self, path: &[Step], test: &mut dyn FnMut(Value<'_>) -> bool) -> bool {{
        let Some((Step::Field(tag), rest)) = path.split_first() else {{
            return test(Value::Message);
        }};
        let _ = rest;
        match tag {{
{visit}            _ => false,
        }}
    }}

    fn texts(&self, test: &mut dyn FnMut(&str) -> bool) -> bool {{
        let _ = &test;
        false
{texts}    }}
}}

",
        name = message.name(),
    )?;
    Ok(())
}
