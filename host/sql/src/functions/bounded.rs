//! Functions that make much of little, as `range(0, 1000000000)`: their results are in no memory pool, so that a query of
//! a few words could take all memory of the machine. They keep their name and say no in time.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::cast;
use arrow::compute::kernels::length::length;
use arrow::datatypes::{DataType, FieldRef, Float64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Most bytes that one of these functions may make of a batch of rows (8192 at most): 8 kB a row, or 8 million numbers.
const MOST: u64 = 64 << 20;

/// Bytes of a number or a time in a list.
const NUMBER: f64 = 8.0;

/// The functions, and how many bytes each makes of its arguments.
pub(super) const BOUNDED: [(&str, Estimate); 8] = [
    ("repeat", repeated),
    ("lpad", padded),
    ("rpad", padded),
    ("replace", replaced),
    ("range", series),
    ("generate_series", series),
    ("array_repeat", repeated),
    ("array_resize", resized),
];

/// Bytes of a row's result, at least nearly; NULL or NaN: few.
type Estimate = fn(&[ArrayRef]) -> Result<Float64Array>;

/// `inner`, unless it would make more than [`MOST`].
pub(super) fn bounded(inner: &ScalarUDF, estimate: Estimate) -> ScalarUDF {
    // A value of constants would be made once, before it is known how many rows it is copied to.
    let mut signature = inner.signature().clone();
    signature.volatility = Volatility::Volatile;
    ScalarUDF::new_from_impl(Bounded {
        inner: Arc::clone(inner.inner()),
        signature,
        estimate,
    })
}

struct Bounded {
    inner: Arc<dyn ScalarUDFImpl>,
    signature: Signature,
    estimate: Estimate,
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let arrays: Vec<_> = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<_>>()?;
        if !arrays.iter().any(|array| array.data_type().is_null()) {
            let each = (self.estimate)(&arrays)?;
            let copies = if constant { args.number_rows as f64 } else { 1.0 };
            // A step of 0 is told by the function itself.
            let each = each.iter().flatten().filter(|bytes| bytes.is_finite());
            let bytes = copies * each.map(|bytes| bytes.max(0.0)).sum::<f64>();
            if bytes > MOST as f64 {
                return exec_err!(
                    "{} would make {:.0} MiB of {} rows, and may make {}: ask for less, or take rows FROM \
                     generate_series(...), which are made as they are needed",
                    self.name(),
                    bytes / f64::from(1 << 20),
                    args.number_rows,
                    MOST >> 20
                );
            }
        }
        self.inner.invoke_with_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

impl fmt::Debug for Bounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

/// Value, count.
fn repeated(arguments: &[ArrayRef]) -> Result<Float64Array> {
    product(&sizes(&arguments[0])?, &floats(&arguments[1])?)
}

/// Text, length in characters.
fn padded(arguments: &[ArrayRef]) -> Result<Float64Array> {
    floats(&arguments[1])
}

/// List, length, value.
fn resized(arguments: &[ArrayRef]) -> Result<Float64Array> {
    let lengths = floats(&arguments[1])?;
    match arguments.get(2) {
        Some(value) => product(&sizes(value)?, &lengths),
        None => Ok(lengths.unary(|length| length * NUMBER)),
    }
}

/// Text, what to look for in it, what to put in its place.
fn replaced(arguments: &[ArrayRef]) -> Result<Float64Array> {
    let [text, from, to] = [sizes(&arguments[0])?, sizes(&arguments[1])?, sizes(&arguments[2])?];
    let places = arrow::compute::binary::<_, _, _, Float64Type>(&text, &from, |text, from| text / from.max(1.0))?;
    product(&places, &to)
}

/// Stop; or start, stop; or start, stop, step.
fn series(arguments: &[ArrayRef]) -> Result<Float64Array> {
    let first = floats(&arguments[0])?;
    let [stop, step] = [arguments.get(1), arguments.get(2)].map(|given| given.map(floats).transpose());
    let length = match stop? {
        Some(stop) => arrow::compute::binary::<_, _, _, Float64Type>(&first, &stop, |start, stop| stop - start)?,
        None => first,
    };
    let count = match step? {
        Some(step) => arrow::compute::binary::<_, _, _, Float64Type>(&length, &step, |length, step| length / step)?,
        None => length,
    };
    Ok(count.unary(|count| count * NUMBER))
}

fn product(left: &Float64Array, right: &Float64Array) -> Result<Float64Array> {
    Ok(arrow::compute::binary(left, right, |left, right| left * right)?)
}

/// Bytes of the values: of texts exactly, of all others their mean.
fn sizes(values: &ArrayRef) -> Result<Float64Array> {
    if values.data_type().is_string() {
        return floats(&length(values.as_ref())?);
    }
    let mean = values.to_data().get_slice_memory_size()? as f64 / values.len().max(1) as f64;
    Ok(Float64Array::from(vec![mean; values.len()]))
}

/// Numbers as they are; times and spans of time as nanoseconds, a month having 30 days.
fn floats(values: &ArrayRef) -> Result<Float64Array> {
    const DAY: f64 = 86_400e9;
    let (whole, unit) = match values.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            return Ok(values.as_primitive::<IntervalMonthDayNanoType>().unary(|span| {
                f64::from(span.months) * 30.0 * DAY + f64::from(span.days) * DAY + span.nanoseconds as f64
            }));
        }
        DataType::Timestamp(unit, _) => {
            let nanoseconds = match unit {
                TimeUnit::Second => 1e9,
                TimeUnit::Millisecond => 1e6,
                TimeUnit::Microsecond => 1e3,
                TimeUnit::Nanosecond => 1.0,
            };
            (cast(values, &DataType::Int64)?, nanoseconds)
        }
        DataType::Date32 => (cast(values, &DataType::Int32)?, DAY),
        DataType::Date64 => (cast(values, &DataType::Int64)?, 1e6),
        _ => (Arc::clone(values), 1.0),
    };
    let floats = cast(&whole, &DataType::Float64)?;
    Ok(floats.as_primitive::<Float64Type>().unary(|value| value * unit))
}
