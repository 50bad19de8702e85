//! Rows as comma-separated values (RFC 4180), for spreadsheets and scripts.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::csv::WriterBuilder;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit, TimestampNanosecondType};
use arrow::error::ArrowError;
use arrow::json::writer::{EncoderOptions, make_encoder};

/// Arrow can print times of a zone by its offset; names of zones need a table of zones.
const UTC_OFFSET: &str = "+00:00";

/// Writes batches of one schema: a line of names, then a line a row. NULL is empty, times are RFC 3339, lists, maps and
/// structures are JSON.
#[derive(Debug)]
pub struct CsvWriter<W: Write> {
    out: W,
    schema: SchemaRef,
}

impl<W: Write> CsvWriter<W> {
    /// With the line of names, which stand over no rows, too.
    pub fn new(out: W, schema: &Schema) -> Result<Self, ArrowError> {
        let fields: Vec<_> = schema.fields().iter().map(flat_field).collect();
        let schema = Arc::new(Schema::new(fields));
        let mut writer = Self { out, schema };
        writer.put(&RecordBatch::new_empty(Arc::clone(&writer.schema)), true)?;
        Ok(writer)
    }

    /// Add rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(batch.columns());
        let columns = columns
            .map(|(field, column)| flat(field, column))
            .collect::<Result<_, _>>()?;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        self.put(&batch, false)
    }

    /// Arrow has only the text of an error of its output, so its output is memory: here the kind of the error stays known.
    fn put(&mut self, batch: &RecordBatch, names: bool) -> Result<(), ArrowError> {
        let mut writer = WriterBuilder::new().with_header(names).build(Vec::new());
        writer.write(batch)?;
        Ok(self.out.write_all(&writer.into_inner())?)
    }

    /// What is under it, with everything written.
    pub fn finish(mut self) -> Result<W, ArrowError> {
        self.out.flush()?;
        Ok(self.out)
    }
}

fn is_utc(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(TimeUnit::Nanosecond, Some(zone)) if &**zone == "UTC")
}

fn flat_field(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        nested if nested.is_nested() => DataType::Utf8,
        time if is_utc(time) => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC_OFFSET.into())),
        _ => return Arc::clone(field),
    };
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()))
}

fn flat(field: &FieldRef, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match column.data_type() {
        nested if nested.is_nested() => json(field, column),
        time if is_utc(time) => {
            let times = column.as_primitive::<TimestampNanosecondType>();
            Ok(Arc::new(times.clone().with_timezone(UTC_OFFSET)))
        }
        _ => Ok(Arc::clone(column)),
    }
}

fn json(field: &FieldRef, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let options = EncoderOptions::default().with_explicit_nulls(true);
    let mut encoder = make_encoder(field, column, &options)?;
    let mut text = Vec::new();
    let texts = (0..column.len()).map(|row| {
        column.is_valid(row).then(|| {
            text.clear();
            encoder.encode(row, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow::array::{
        DictionaryArray, Float64Array, Float64Builder, ListBuilder, MapBuilder, StringBuilder, TimestampNanosecondArray,
    };
    use arrow::datatypes::Int16Type;

    use super::*;

    /// A reader that goes after the line of names.
    #[derive(Default)]
    struct Gone {
        has_names: bool,
    }

    impl Write for Gone {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            match std::mem::replace(&mut self.has_names, true) {
                true => Err(std::io::ErrorKind::BrokenPipe.into()),
                false => Ok(bytes.len()),
            }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_kind_of_an_error_of_its_output_is_known() {
        // More than any buffer on the way holds.
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(std::iter::repeat_n("text", 1 << 16)));
        let batch = RecordBatch::try_from_iter([("name", texts)]).unwrap();
        let mut writer = CsvWriter::new(Gone::default(), &batch.schema()).unwrap();
        let failed = writer.write(&batch);
        let kind = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
        assert!(
            matches!(&failed, Err(ArrowError::IoError(_, error)) if kind(error)),
            "{failed:?}"
        );
    }

    #[test]
    fn each_kind_of_value_has_its_text() {
        let mut texts = ListBuilder::new(StringBuilder::new());
        texts.append_value([Some("a, \"b\""), Some("c")]);
        texts.append_null();
        let mut numbers = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
        numbers.keys().append_value("rate");
        numbers.values().append_value(0.5);
        numbers.append(true).unwrap();
        numbers.append(true).unwrap();
        let names: DictionaryArray<Int16Type> = vec![Some("OK"), None].into_iter().collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            (
                "time",
                Arc::new(TimestampNanosecondArray::from(vec![Some(1_500_000_000), None]).with_timezone("UTC")),
            ),
            ("name", Arc::new(names)),
            ("seconds", Arc::new(Float64Array::from(vec![Some(0.25), None]))),
            ("texts", Arc::new(texts.finish())),
            ("numbers", Arc::new(numbers.finish())),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap();
        let mut writer = CsvWriter::new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        assert_eq!(
            String::from_utf8(writer.finish().unwrap()).unwrap(),
            "time,name,seconds,texts,numbers\n\
             1970-01-01T00:00:01.500Z,OK,0.25,\"[\"\"a, \\\"\"b\\\"\"\"\",\"\"c\"\"]\",\"{\"\"rate\"\":0.5}\"\n\
             ,,,,{}\n"
        );
    }
}
