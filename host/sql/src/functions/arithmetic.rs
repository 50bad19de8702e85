//! Arithmetic of counters. Their types have no sign, and the engine computes in the types that it is given: 3 - 5 would be
//! 18446744073709551614, and five TTLs of 64 together 64.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Sums, differences and products of numbers without a sign have one, and room.
#[derive(Debug)]
pub(crate) struct Signed;

impl ExprPlanner for Signed {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let operator = match expr.op {
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Multiply => Operator::Multiply,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let unsigned = |side: &Expr| side.get_type(schema).ok().filter(DataType::is_unsigned_integer);
        // The right one first: of a long chain it is the short one.
        let Some(right) = unsigned(&expr.right) else {
            return Ok(PlannerResult::Original(expr));
        };
        let Some(left) = unsigned(&expr.left) else {
            return Ok(PlannerResult::Original(expr));
        };
        let large = |side: &DataType| matches!(side, DataType::UInt32 | DataType::UInt64);
        let wide = if operator == Operator::Multiply && (large(&left) || large(&right)) {
            DataType::Decimal128(20, 0)
        } else {
            DataType::Int64
        };
        let [left, right] = [expr.left, expr.right].map(|side| Box::new(cast(side, wide.clone())));
        let signed = Expr::BinaryExpr(BinaryExpr::new(left, operator, right));
        Ok(PlannerResult::Planned(signed))
    }
}
