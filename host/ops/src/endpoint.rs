//! The address at which metrics are scraped.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use weir_api::access::Access;
use weir_api::http;

use crate::metrics::Metrics;

/// OpenMetrics 1.0, section "Protocol negotiation".
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answer `GET /metrics` on a socket that listens, until the task is dropped.
pub async fn serve(listener: TcpListener, metrics: Metrics, access: Access) {
    let router = Router::new().route("/metrics", get(page)).with_state(Arc::new(metrics));
    http::serve(listener, http::guarded(router, &access), &access).await;
}

async fn page(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.page() {
        Ok(page) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], page).into_response(),
        Err(fmt) => (StatusCode::INTERNAL_SERVER_ERROR, fmt.to_string()).into_response(),
    }
}
