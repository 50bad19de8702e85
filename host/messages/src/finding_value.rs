//! The values of a finding in JSON: the number, text or list itself, without the name of the case.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::v1::finding_value::Value;
use crate::v1::{FindingValue, NumberList};

impl From<f64> for FindingValue {
    fn from(number: f64) -> Self {
        Self {
            value: Some(Value::Number(number)),
        }
    }
}

impl From<&str> for FindingValue {
    fn from(text: &str) -> Self {
        Self {
            value: Some(Value::Text(text.to_owned())),
        }
    }
}

impl From<Vec<f64>> for FindingValue {
    fn from(values: Vec<f64>) -> Self {
        Self {
            value: Some(Value::Numbers(NumberList { values })),
        }
    }
}

impl Serialize for FindingValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            None => serializer.serialize_unit(),
            Some(Value::Number(number)) => serializer.serialize_f64(*number),
            Some(Value::Text(text)) => serializer.serialize_str(text),
            Some(Value::Numbers(list)) => list.values.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for FindingValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = FindingValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text or a list of numbers")
            }

            fn visit_unit<E: de::Error>(self) -> Result<FindingValue, E> {
                Ok(FindingValue { value: None })
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<FindingValue, E> {
                Ok(number.into())
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<FindingValue, E> {
                Ok((number as f64).into())
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<FindingValue, E> {
                Ok((number as f64).into())
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<FindingValue, E> {
                Ok(text.into())
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<FindingValue, A::Error> {
                let mut values = Vec::new();
                while let Some(number) = list.next_element::<f64>()? {
                    values.push(number);
                }
                Ok(values.into())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
