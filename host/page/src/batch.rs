//! Columns to an Arrow IPC stream.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, RecordBatch, RecordBatchOptions, StringArray,
    UInt8Array, UInt16Array, UInt32Array,
};
use arrow::datatypes::{Field, Int32Type, Schema};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;

/// Columns of equal length, and what is said about all of them.
#[derive(Debug, Default)]
pub struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
    metadata: HashMap<String, String>,
}

macro_rules! add {
    ($($(#[$doc:meta])* $name:ident: $value:ty => $array:ident;)*) => {
        $($(#[$doc])* #[must_use]
        pub fn $name(self, name: &str, values: Vec<$value>) -> Self {
            self.array(name, Arc::new($array::from(values)))
        })*
    };
}

impl Columns {
    add! {
        /// Numbers.
        f64: f64 => Float64Array;
        /// Numbers, some unknown.
        f64_or_null: Option<f64> => Float64Array;
        /// Short numbers.
        f32: f32 => Float32Array;
        /// Rows and counts.
        u32: u32 => UInt32Array;
        /// The same, some unknown.
        u32_or_null: Option<u32> => UInt32Array;
        /// Small numbers.
        u16: u16 => UInt16Array;
        /// Codes.
        u8: u8 => UInt8Array;
        /// Yes and no.
        bool: bool => BooleanArray;
        /// Yes, no and unknown.
        bool_or_null: Option<bool> => BooleanArray;
        /// Texts, each its own.
        text: Option<String> => StringArray;
    }

    /// Texts that come again and again.
    #[must_use]
    pub fn words<'a>(self, name: &str, values: impl Iterator<Item = Option<&'a str>>) -> Self {
        let array: DictionaryArray<Int32Type> = values.collect();
        self.array(name, Arc::new(array))
    }

    /// A column.
    #[must_use]
    pub fn array(mut self, name: &str, array: ArrayRef) -> Self {
        self.fields.push(Field::new(name, array.data_type().clone(), true));
        self.arrays.push(array);
        self
    }

    /// Something about all of it.
    #[must_use]
    pub fn says(mut self, name: &str, value: impl ToString) -> Self {
        self.metadata.insert(name.to_owned(), value.to_string());
        self
    }

    /// Only these columns, in this order; the error names one that is not there.
    pub fn only(self, names: &[String]) -> Result<Self, String> {
        let mut kept = Self {
            metadata: self.metadata,
            ..Self::default()
        };
        for name in names {
            let Some(place) = self.fields.iter().position(|field| field.name() == name) else {
                return Err(name.clone());
            };
            kept = kept.array(name, Arc::clone(&self.arrays[place]));
        }
        Ok(kept)
    }

    /// One batch.
    pub fn batch(self) -> Result<RecordBatch, ArrowError> {
        let rows = self.arrays.first().map_or(0, |array| array.len());
        let schema = Schema::new_with_metadata(self.fields, self.metadata);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(schema), self.arrays, &options)
    }

    /// As a stream.
    pub fn stream(self) -> Result<Vec<u8>, ArrowError> {
        let batch = self.batch()?;
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
        writer.write(&batch)?;
        writer.into_inner()
    }
}
