//! Percentiles by nearest rank: always a value that was measured, as in Weir's reports. The engine has the interpolating
//! `percentile_cont` and the approximate `approx_percentile_cont` itself.

use std::mem::size_of_val;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, DocSection, Documentation, Signature, Volatility};
use datafusion::physical_expr::expressions::Literal;

const NAME: &str = "percentile_disc";

/// `percentile_disc(value, p)`, also `percentile_disc(p) WITHIN GROUP (ORDER BY value)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PercentileDisc {
    signature: Signature,
    documentation: Documentation,
}

impl PercentileDisc {
    pub(super) fn new() -> Self {
        Self {
            signature: Signature::exact(vec![DataType::Float64, DataType::Float64], Volatility::Immutable),
            documentation: Documentation::builder(
                DocSection {
                    include: true,
                    label: "Weir",
                    description: None,
                },
                "The value at rank ceil(p * count) of the sorted values, p from 0 to 1 (nearest rank, exact); NULLs do \
                 not count.",
                "percentile_disc(value, p)",
            )
            .build(),
        }
    }
}

impl AggregateUDFImpl for PercentileDisc {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let values = Field::new_list_field(DataType::Float64, true);
        let name = format_state_name(args.name, "values");
        Ok(vec![Arc::new(Field::new_list(name, values, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return plan_err!("{NAME}(DISTINCT ...) is not possible");
        }
        let literal = args.exprs[1].downcast_ref::<Literal>().map(Literal::value);
        let Some(ScalarValue::Float64(Some(p @ 0.0..=1.0))) = literal else {
            return plan_err!("{NAME}: p is a constant from 0 to 1, as 0.95");
        };
        let descending = args.order_bys.first().is_some_and(|order| order.options.descending);
        Ok(Box::new(Values {
            values: Vec::new(),
            p: *p,
            descending,
        }))
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.documentation)
    }
}

/// All values of a group.
#[derive(Debug)]
struct Values {
    values: Vec<f64>,
    p: f64,
    descending: bool,
}

impl Accumulator for Values {
    fn update_batch(&mut self, arrays: &[ArrayRef]) -> Result<()> {
        let array = arrays[0].as_primitive::<Float64Type>();
        if array.null_count() == 0 {
            self.values.extend_from_slice(array.values());
        } else {
            self.values.extend(array.iter().flatten());
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0].as_list::<i32>();
        lists
            .iter()
            .flatten()
            .try_for_each(|values| self.update_batch(&[values]))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = arrow::array::Float64Array::from(std::mem::take(&mut self.values));
        let list = SingleRowListArrayBuilder::new(Arc::new(values)).with_nullable(true);
        Ok(vec![list.build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(nearest_rank(
            &mut self.values,
            self.p,
            self.descending,
        )))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>()
    }
}

/// The value at rank ceil(p * count), counted from the largest if `descending`. Changes the order of `values`.
fn nearest_rank(values: &mut [f64], p: f64, descending: bool) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    // A product a hair above a whole number is that number: 0.07 * 100 is 7.000000000000001.
    let product = p * values.len() as f64;
    let rank = (product * (1.0 - 4.0 * f64::EPSILON)).ceil().max(1.0) as usize - 1;
    let place = if descending { last - rank } else { rank };
    let (_, value, _) = values.select_nth_unstable_by(place.min(last), f64::total_cmp);
    Some(*value)
}
