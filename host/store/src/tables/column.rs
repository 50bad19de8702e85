//! A column: its name, its type, its sentence of documentation, and where its value comes from. Schema, documentation
//! and builder are all made from this one definition.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, BooleanBuilder, DictionaryArray, Float64Builder, Int32Builder, ListBuilder, MapBuilder,
    PrimitiveBuilder, StringArray, StringBuilder, StringDictionaryBuilder, UInt32Builder, UInt64Builder,
};
use arrow::datatypes::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, DataType, Field, Float64Type, Int16Type, Int32Type, TimeUnit,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use weir_analysis::address;
use weir_messages::Timestamp;
use weir_record::time::utc_from_tai;

/// The zone of all times.
const UTC: &str = "UTC";

/// A column of a table whose rows are made from `R`.
pub struct Column<R> {
    /// Name, as in the JSON output, flattened.
    pub name: &'static str,
    /// What it is, with its unit.
    pub doc: &'static str,
    /// It may be NULL: not known, or without meaning for this row.
    pub nullable: bool,
    cell: Cell<R>,
}

/// Where the value of a cell comes from. `None` is NULL.
pub enum Cell<R> {
    /// A truth value.
    Bool(fn(&R) -> Option<bool>),
    /// Small numbers.
    U8(fn(&R) -> Option<u8>),
    /// Numbers of 16 bits.
    U16(fn(&R) -> Option<u16>),
    /// Numbers of 32 bits.
    U32(fn(&R) -> Option<u32>),
    /// Counts, bytes and ids.
    U64(fn(&R) -> Option<u64>),
    /// Seconds, rates and shares.
    F64(fn(&R) -> Option<f64>),
    /// A time: UTC ns since 1970.
    Time(fn(&R) -> Option<i64>),
    /// One of a closed set of names.
    Name(fn(&R) -> Option<Cow<'_, str>>),
    /// A text that many rows have.
    Text(fn(&R) -> Option<Cow<'_, str>>),
    /// An address (IPv4 as `::ffff:a.b.c.d`), shown as text.
    Address(fn(&R) -> Option<[u8; 16]>),
    /// A text of its own.
    Prose(fn(&R) -> Option<Cow<'_, str>>),
    /// Names or sentences.
    Texts(fn(&R) -> Vec<Cow<'_, str>>),
    /// Numbers of 32 bits.
    U32s(fn(&R) -> Vec<u32>),
    /// Ids.
    U64s(fn(&R) -> Vec<u64>),
    /// Numbers by name.
    Numbers(fn(&R) -> Vec<(&str, f64)>),
}

impl<R: 'static> Column<R> {
    /// A column that every row has.
    pub(crate) const fn always(name: &'static str, cell: Cell<R>, doc: &'static str) -> Self {
        Self {
            name,
            doc,
            nullable: false,
            cell,
        }
    }

    /// A column that may be NULL.
    pub(crate) const fn known(name: &'static str, cell: Cell<R>, doc: &'static str) -> Self {
        Self {
            name,
            doc,
            nullable: true,
            cell,
        }
    }

    /// As Arrow has it.
    pub(crate) fn field(&self) -> Field {
        Field::new(self.name, self.cell.data_type(), self.nullable)
    }

    /// What collects its values.
    pub(crate) fn collector(&self) -> Box<dyn Collect<R>> {
        fn boxed<R, G: Send + 'static, B: Send + 'static>(get: G, builder: B) -> Box<dyn Collect<R>>
        where
            Collector<G, B>: Collect<R>,
        {
            Box::new(Collector { get, builder })
        }
        match self.cell {
            Cell::Bool(get) => boxed(get, BooleanBuilder::new()),
            Cell::U8(get) => boxed(get, PrimitiveBuilder::<UInt8Type>::new()),
            Cell::U16(get) => boxed(get, PrimitiveBuilder::<UInt16Type>::new()),
            Cell::U32(get) => boxed(get, PrimitiveBuilder::<UInt32Type>::new()),
            Cell::U64(get) => boxed(get, PrimitiveBuilder::<UInt64Type>::new()),
            Cell::F64(get) => boxed(get, PrimitiveBuilder::<Float64Type>::new()),
            Cell::Time(get) => boxed(
                get,
                PrimitiveBuilder::<TimestampNanosecondType>::new().with_timezone(UTC),
            ),
            Cell::Name(get) => boxed(get, StringDictionaryBuilder::<Int16Type>::new()),
            Cell::Text(get) => boxed(get, StringDictionaryBuilder::<Int32Type>::new()),
            Cell::Address(get) => boxed(get, Addresses::default()),
            Cell::Prose(get) => boxed(get, StringBuilder::new()),
            Cell::Texts(get) => boxed(get, ListBuilder::new(StringBuilder::new())),
            Cell::U32s(get) => boxed(get, ListBuilder::new(UInt32Builder::new())),
            Cell::U64s(get) => boxed(get, ListBuilder::new(UInt64Builder::new())),
            Cell::Numbers(get) => boxed(get, numbers()),
        }
    }
}

impl<R> Cell<R> {
    fn data_type(&self) -> DataType {
        let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
        match self {
            Self::Bool(_) => DataType::Boolean,
            Self::U8(_) => DataType::UInt8,
            Self::U16(_) => DataType::UInt16,
            Self::U32(_) => DataType::UInt32,
            Self::U64(_) => DataType::UInt64,
            Self::F64(_) => DataType::Float64,
            Self::Time(_) => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
            Self::Name(_) => name_type(),
            Self::Text(_) | Self::Address(_) => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            Self::Prose(_) => DataType::Utf8,
            Self::Texts(_) => list(DataType::Utf8),
            Self::U32s(_) => list(DataType::UInt32),
            Self::U64s(_) => list(DataType::UInt64),
            Self::Numbers(_) => numbers().finish().data_type().clone(),
        }
    }
}

/// The type of a closed set of names.
pub(crate) fn name_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8))
}

/// A time of a message as a cell.
pub(crate) fn nanos(time: Option<Timestamp>) -> Option<i64> {
    time.map(Timestamp::unix_nanos)
}

/// TAI ns of a record as a cell; 0 is: not known.
pub(crate) fn utc(tai: u64) -> Option<i64> {
    (tai > 0).then(|| utc_from_tai(tai).min(i64::MAX as u64) as i64)
}

/// A text as a cell; an empty one is not known.
pub(crate) fn text(text: &str) -> Option<Cow<'_, str>> {
    (!text.is_empty()).then_some(Cow::Borrowed(text))
}

/// Values of one column on their way into an array.
pub(crate) trait Collect<R>: Send {
    /// That of one row.
    fn push(&mut self, row: &R) -> Result<(), ArrowError>;
    /// All since the last time.
    fn finish(&mut self) -> Result<ArrayRef, ArrowError>;
}

/// Where values come from and where they go.
struct Collector<G, B> {
    get: G,
    builder: B,
}

type Get<R, V> = fn(&R) -> V;
type GetText<R> = for<'a> fn(&'a R) -> Option<Cow<'a, str>>;
type GetTexts<R> = for<'a> fn(&'a R) -> Vec<Cow<'a, str>>;
type GetNumbers<R> = for<'a> fn(&'a R) -> Vec<(&'a str, f64)>;

/// The end of a batch is the same for all of Arrow's builders.
macro_rules! finish {
    () => {
        fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
            Ok(Arc::new(self.builder.finish()))
        }
    };
}

impl<R, P: ArrowPrimitiveType> Collect<R> for Collector<Get<R, Option<P::Native>>, PrimitiveBuilder<P>> {
    fn push(&mut self, row: &R) -> Result<(), ArrowError> {
        self.builder.append_option((self.get)(row));
        Ok(())
    }
    finish!();
}

impl<R> Collect<R> for Collector<Get<R, Option<bool>>, BooleanBuilder> {
    fn push(&mut self, row: &R) -> Result<(), ArrowError> {
        self.builder.append_option((self.get)(row));
        Ok(())
    }
    finish!();
}

impl<R, K: ArrowDictionaryKeyType> Collect<R> for Collector<GetText<R>, StringDictionaryBuilder<K>> {
    fn push(&mut self, row: &R) -> Result<(), ArrowError> {
        match (self.get)(row) {
            Some(text) => self.builder.append(text).map(drop),
            None => {
                self.builder.append_null();
                Ok(())
            }
        }
    }
    finish!();
}

impl<R> Collect<R> for Collector<GetText<R>, StringBuilder> {
    fn push(&mut self, row: &R) -> Result<(), ArrowError> {
        self.builder.append_option((self.get)(row));
        Ok(())
    }
    finish!();
}

impl<R> Collect<R> for Collector<GetTexts<R>, ListBuilder<StringBuilder>> {
    fn push(&mut self, row: &R) -> Result<(), ArrowError> {
        self.builder.append_value((self.get)(row).into_iter().map(Some));
        Ok(())
    }
    finish!();
}

impl<R> Collect<R> for Collector<Get<R, Vec<u32>>, ListBuilder<UInt32Builder>> {
    fn push(&mut self, row: &R) -> Result<(), ArrowError> {
        self.builder.append_value((self.get)(row).into_iter().map(Some));
        Ok(())
    }
    finish!();
}

impl<R> Collect<R> for Collector<Get<R, Vec<u64>>, ListBuilder<UInt64Builder>> {
    fn push(&mut self, row: &R) -> Result<(), ArrowError> {
        self.builder.append_value((self.get)(row).into_iter().map(Some));
        Ok(())
    }
    finish!();
}

/// Numbers by name.
fn numbers() -> MapBuilder<StringBuilder, Float64Builder> {
    MapBuilder::new(None, StringBuilder::new(), Float64Builder::new())
}

impl<R> Collect<R> for Collector<GetNumbers<R>, MapBuilder<StringBuilder, Float64Builder>> {
    fn push(&mut self, row: &R) -> Result<(), ArrowError> {
        for (name, number) in (self.get)(row) {
            self.builder.keys().append_value(name);
            self.builder.values().append_value(number);
        }
        self.builder.append(true)
    }
    finish!();
}

/// Addresses as a dictionary: each is written as text once a batch.
#[derive(Default)]
struct Addresses {
    keys: Int32Builder,
    texts: Vec<String>,
    known: HashMap<[u8; 16], i32>,
}

impl<R> Collect<R> for Collector<Get<R, Option<[u8; 16]>>, Addresses> {
    fn push(&mut self, row: &R) -> Result<(), ArrowError> {
        let Addresses { keys, texts, known } = &mut self.builder;
        let Some(bytes) = (self.get)(row) else {
            keys.append_null();
            return Ok(());
        };
        let key = match known.get(&bytes) {
            Some(key) => *key,
            None => {
                let key = i32::try_from(texts.len()).map_err(|_| ArrowError::DictionaryKeyOverflowError)?;
                texts.push(address(bytes));
                known.insert(bytes, key);
                key
            }
        };
        keys.append_value(key);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let Addresses { keys, texts, known } = &mut self.builder;
        let values = StringArray::from_iter_values(texts.drain(..));
        known.clear();
        Ok(Arc::new(DictionaryArray::try_new(keys.finish(), Arc::new(values))?))
    }
}
