//! Families of metrics on one page.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use crate::histogram::Histogram;

/// Labels of a sample: (name, value).
pub(crate) type Labels<'a> = [(&'a str, &'a str)];

/// Writes families one after another. Names are given without the suffix of the unit and of counters (`_bytes`, `_total`).
pub(crate) struct Page<'a>(pub DescriptorEncoder<'a>);

impl Page<'_> {
    /// A counter without labels.
    pub fn count(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.counts(name, help, |family| family.sample(&[], value))
    }

    /// A counter with labels.
    pub fn counts(&mut self, name: &str, help: &str, fill: impl FnOnce(&mut Family<'_>) -> fmt::Result) -> fmt::Result {
        self.family(name, help, None, MetricType::Counter, fill)
    }

    /// A gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Into<f64>) -> fmt::Result {
        let value = value.into();
        self.gauges(name, help, |family| family.gauge(&[], value))
    }

    /// A gauge with labels.
    pub fn gauges(&mut self, name: &str, help: &str, fill: impl FnOnce(&mut Family<'_>) -> fmt::Result) -> fmt::Result {
        self.family(name, help, None, MetricType::Gauge, fill)
    }

    /// A family of any kind, with a unit.
    pub fn family(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        kind: MetricType,
        fill: impl FnOnce(&mut Family<'_>) -> fmt::Result,
    ) -> fmt::Result {
        fill(&mut Family(self.0.encode_descriptor(name, help, unit, kind)?))
    }

    /// Durations.
    pub fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) -> fmt::Result {
        let buckets: Vec<_> = histogram.buckets().collect();
        self.family(name, help, Some(&Unit::Seconds), MetricType::Histogram, |family| {
            family
                .0
                .encode_histogram::<NoLabelSet>(histogram.sum, histogram.count(), &buckets, None)
        })
    }
}

/// Samples of one family.
pub(crate) struct Family<'a>(prometheus_client::encoding::MetricEncoder<'a>);

impl Family<'_> {
    /// A sample of a counter.
    pub fn sample(&mut self, labels: &Labels<'_>, value: impl EncodeCounterValue) -> fmt::Result {
        if labels.is_empty() {
            return self.0.encode_counter::<NoLabelSet, _, f64>(&value, None);
        }
        self.0
            .encode_family(&labels)?
            .encode_counter::<NoLabelSet, _, f64>(&value, None)
    }

    /// A sample of a gauge.
    pub fn gauge(&mut self, labels: &Labels<'_>, value: impl EncodeGaugeValue) -> fmt::Result {
        if labels.is_empty() {
            return self.0.encode_gauge(&value);
        }
        self.0.encode_family(&labels)?.encode_gauge(&value)
    }
}
