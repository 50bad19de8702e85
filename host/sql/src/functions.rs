//! What SQL lacks for this field: sequence arithmetic, subnets, names of hosts, percentiles by rank, signs; and limits of what it has.

mod arithmetic;
mod bounded;
mod host_name;
mod percentile_disc;
mod sequence;
mod subnet;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, DocSection, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

pub(crate) use arithmetic::Signed;
pub use host_name::Hosts;

/// The functions of rows; names of hosts are those of `hosts`.
pub fn scalar(hosts: Hosts) -> Vec<Arc<ScalarUDF>> {
    [
        sequence::seq_diff(),
        sequence::seq_between(),
        subnet::in_subnet(),
        host_name::host_name(hosts),
    ]
    .into_iter()
    .map(|function| Arc::new(ScalarUDF::new_from_impl(function)))
    .collect()
}

/// Of the engine's own functions those that must be kept from taking all memory, in place of themselves.
pub fn limited(engine: &impl FunctionRegistry) -> Result<Vec<Arc<ScalarUDF>>> {
    let functions = bounded::BOUNDED.into_iter();
    let limited = functions.map(|(name, estimate)| Ok(Arc::new(bounded::bounded(&*engine.udf(name)?, estimate))));
    limited.collect()
}

/// The functions of groups of rows.
pub fn aggregate() -> Vec<Arc<AggregateUDF>> {
    vec![Arc::new(AggregateUDF::new_from_impl(
        percentile_disc::PercentileDisc::new(),
    ))]
}

/// What an argument may be.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Text in any of Arrow's types; given to the function as `Utf8View`.
    Text,
    /// A whole number in any of Arrow's types; given to the function as `Int64`.
    Whole,
}

impl Kind {
    fn coerce(self, function: &str, data_type: &DataType) -> Result<DataType> {
        let plain = match data_type {
            DataType::Dictionary(_, value) => value,
            other => other,
        };
        match self {
            Self::Text if plain.is_string() || plain.is_null() => Ok(DataType::Utf8View),
            Self::Whole if plain.is_integer() || plain.is_null() => Ok(DataType::Int64),
            Self::Text => plan_err!("{function} takes text here, not {data_type}"),
            Self::Whole => plan_err!("{function} takes a whole number here, not {data_type}"),
        }
    }
}

type Body = dyn Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync;

/// A function of rows: its name tells it from others.
struct Function {
    name: &'static str,
    arguments: &'static [(&'static str, Kind)],
    returns: DataType,
    documentation: Documentation,
    signature: Signature,
    body: Box<Body>,
}

impl Function {
    fn new(
        name: &'static str,
        arguments: &'static [(&'static str, Kind)],
        returns: DataType,
        description: &str,
        body: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
    ) -> Self {
        let names: Vec<_> = arguments.iter().map(|(name, _)| *name).collect();
        let syntax = format!("{name}({})", names.join(", "));
        Self {
            name,
            arguments,
            returns,
            documentation: Documentation::builder(
                DocSection {
                    include: true,
                    label: "Weir",
                    description: None,
                },
                description,
                syntax,
            )
            .build(),
            signature: Signature::user_defined(Volatility::Immutable),
            body: Box::new(body),
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if types.len() != self.arguments.len() {
            return plan_err!("write it as {}", self.documentation.syntax_example);
        }
        let pairs = types.iter().zip(self.arguments);
        pairs.map(|(given, (_, kind))| kind.coerce(self.name, given)).collect()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // All constant: once is enough.
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let arrays: Vec<_> = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<_>>()?;
        let result = (self.body)(&arrays)?;
        if constant {
            return datafusion::common::ScalarValue::try_from_array(&result, 0).map(ColumnarValue::Scalar);
        }
        Ok(ColumnarValue::Array(result))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.documentation)
    }
}
